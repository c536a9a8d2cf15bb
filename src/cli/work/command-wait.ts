/**
 * Waits of a command of `errand work`: it delegates children, and ends with exit status 79 and the line
 * `{"wait_for": {…}}`. The end of the children starts the command again. Limit: the command delegates with a token of its own.
 */
import type { WaitedFor } from "../../client/wait-for.ts";
import type { Reply, Work } from "../../client/work.ts";
import { type AwaitRequest, awaitRequestSchema } from "../../schema/await.ts";
import { issuesOf, readAs } from "../../schema/issues.ts";
import { parseJson } from "../../util/parse-json.ts";
import type { CommandResult } from "./child.ts";
import { EXIT_QUESTION, lastLineOf } from "./command-question.ts";
import { failed } from "./failed-reply.ts";

const LINE = /^\s*\{\s*"wait_for"\s*:/;

/** True for a line with a wait, which is not reported as progress. */
export const isWaitLine = (line: string): boolean => LINE.test(line);

/** What the last line waits for; a reply if it is not valid; undefined if it is no wait. */
function toWait(result: CommandResult): AwaitRequest | Reply | undefined {
  const last = lastLineOf(result);
  if (!isWaitLine(last)) return undefined;
  const line = parseJson(last);
  const given = typeof line === "object" && line !== null && "wait_for" in line ? line.wait_for : undefined;
  const checked = readAs(awaitRequestSchema, given);
  if (checked.success) return checked.data;
  const why = issuesOf(checked.error, { whole: "wait_for" }).text;
  return failed(
    "command_failed",
    `exit status ${EXIT_QUESTION}, but the last line is not a valid wait: ${why}`,
    false,
  );
}

/** The failure of a command that says that it waits, and ends as if it were done; undefined for any other. */
export function missedWait(result: CommandResult): Reply | undefined {
  if (result.exitCode !== 0 || result.stoppedBy !== undefined) return undefined;
  if (!("children" in (toWait(result) ?? {}))) return undefined;
  return failed(
    "command_failed",
    `the last line waits for children, but the exit status is 0: to wait, end with exit status ${EXIT_QUESTION}`,
    false,
  );
}

/** The waits of one run. */
export class CommandWaits {
  readonly #task: Work;
  readonly #over = new Set<string>();
  /** What became of the children of the newest wait. */
  newest: WaitedFor | undefined;

  constructor(task: Work) {
    this.#task = task;
    this.newest = task.waited;
  }

  /**
   * Waits as the command's last line says. `again`: the children have ended, and the command is to run again. Throws if the
   * run ends here, because they have not. Undefined: the command does not wait.
   */
  async wait(result: CommandResult): Promise<"again" | Reply | undefined> {
    const wait = toWait(result);
    if (wait === undefined || "state" in wait) return wait;
    const { children, until, time_limit_seconds, checkpoint } = wait;
    const same = JSON.stringify([[...children].sort(), until]);
    // It would run for ever.
    if (this.#over.has(same)) {
      return failed(
        "command_failed",
        "the command waits again for the same children, which have ended",
        false,
      );
    }
    this.newest = await this.#task.waitFor(children, {
      until,
      timeLimitSeconds: time_limit_seconds,
      checkpoint,
    });
    if (this.newest.outcome === "ended") this.#over.add(same);
    return "again";
  }
}
