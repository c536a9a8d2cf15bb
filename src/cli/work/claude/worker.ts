/** `errand work --preset claude`, unless nobody is asked: works on delegations with Claude Code, which asks people. */
import type { Outcome, Work } from "../../../client/work.ts";
import { isCompleted } from "../is-completed.ts";
import { Sessions } from "../presets/sessions.ts";
import { withCommandFiles } from "../with-command-files.ts";
import type { Workspace } from "../workspace.ts";
import { runClaude } from "./run.ts";
import type { ClaudeOptions, ClaudeSetup } from "./setup.ts";

const COLLECT_MS = 200;
/** It writes the conversation with a delay. */
const SETTLE_MS = 500;
/** A loaded machine needs 10 s. */
const GOES_ON_MS = 60_000;

export class ClaudeWorker {
  readonly #setup: ClaudeSetup;
  readonly #sessions: Sessions;
  #hasWorked = false;

  constructor(options: ClaudeOptions) {
    this.#setup = {
      collectMs: COLLECT_MS,
      settleMs: SETTLE_MS,
      goesOnMs: GOES_ON_MS,
      ...options,
      hasWorked: () => this.#hasWorked,
    };
    this.#sessions = new Sessions(options.stateHome);
  }

  run(task: Work, workspace: Workspace): Promise<Outcome> {
    const { program, warn } = this.#setup;
    return this.#sessions.use(program, workspace.folder, task, (session) =>
      withCommandFiles(task, { warn }, async (files) => {
        const outcome = await runClaude({ task, workspace, session, files }, this.#setup);
        this.#hasWorked ||= isCompleted(outcome);
        return outcome;
      }),
    );
  }
}
