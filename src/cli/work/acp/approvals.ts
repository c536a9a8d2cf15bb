/** Asks the broker's questions, and uses the answers. */
import type { Answered, Question } from "../../../client/questions.ts";
import type { Work } from "../../../client/work.ts";
import { ParkedError } from "../../../lease-holder/lost.ts";

export interface Approvals {
  /**
   * The requests of one question, each with a `requestId`. `parked`: the lease is over, and the answer starts another run.
   */
  ask(requests: readonly Question[]): Promise<readonly Answered[] | "parked">;
  /** Called before an answer is handed to the agent. `again`: an earlier run used it, so the call may have run. */
  use(answer: Pick<Answered, "interruptId" | "requestId">): Promise<"first" | "again">;
}

export interface AskTimes {
  /** How long a question is held, with the agent's process and the lease. */
  readonly holdMs: number;
  /** How long after the answer the delegation is kept for this worker, which has the conversation. */
  readonly stickyMs: number;
}

export function brokerApprovals(task: Work, { holdMs, stickyMs }: AskTimes): Approvals {
  return {
    ask: async (requests) => {
      try {
        return await task.askAll(requests, { holdSeconds: holdMs / 1000, stickySeconds: stickyMs / 1000 });
      } catch (error) {
        if (error instanceof ParkedError) return "parked";
        throw error;
      }
    },
    use: async (answer) => ((await task.use(answer)) === "now" ? "first" : "again"),
  };
}
