/** `errand work --acp`: works on delegations with an agent that speaks the Agent Client Protocol, version 1. */
import type { Outcome, Work } from "../../../client/work.ts";
import { isCompleted } from "../is-completed.ts";
import { Sessions } from "../presets/sessions.ts";
import { withCommandFiles } from "../with-command-files.ts";
import type { Workspace } from "../workspace.ts";
import { Pool } from "./pool.ts";
import { runWith } from "./run.ts";
import type { AcpOptions, AcpSetup } from "./setup.ts";

const COLLECT_MS = 200;
/** Agents may write the conversation with a delay. */
const SETTLE_MS = 1500;
const CANCEL_GRACE_MS = 10_000;
/** The ids of sessions are the agents' own. */
const SESSION_ID = /^[\s\S]{1,1024}$/;

const UNKNOWN_MODE =
  "this worker knows no mode of the agent in which it asks before it uses a tool, so it leaves the mode as it is; see --acp-mode.";

export class AcpWorker {
  readonly #setup: AcpSetup;
  readonly #pool: Pool;
  readonly #sessions: Sessions;
  #hasWorked = false;

  constructor(options: AcpOptions) {
    let isNoted = false;
    this.#setup = {
      collectMs: COLLECT_MS,
      settleMs: SETTLE_MS,
      cancelGraceMs: CANCEL_GRACE_MS,
      ...options,
      noteUnknownMode: () => {
        if (!isNoted && options.asksItself !== true) options.warn(UNKNOWN_MODE);
        isNoted = true;
      },
      hasWorked: () => this.#hasWorked,
    };
    this.#pool = new Pool(options);
    this.#sessions = new Sessions(options.stateHome, SESSION_ID);
  }

  run(task: Work, workspace: Workspace): Promise<Outcome> {
    const { command, warn } = this.#setup;
    return this.#sessions.use(`acp ${JSON.stringify(command)}`, workspace.folder, task, (session) =>
      withCommandFiles(task, { warn }, async (files) => {
        const agent = await this.#pool.take(session.id, task.signal);
        if (agent.group !== undefined) files.runsAs(agent.group);
        const outcome = await runWith(agent, { task, workspace, session, files }, this.#setup).finally(() =>
          this.#pool.give(agent),
        );
        this.#hasWorked ||= isCompleted(outcome);
        return outcome;
      }),
    );
  }

  /** Ends all processes of the agent. */
  close(): Promise<void> {
    return this.#pool.close();
  }
}
