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

/** Each question is held for `holdMs`, with the agent's process and the lease. */
export function brokerApprovals(task: Work, holdMs: number): Approvals {
  return {
    ask: async (requests) => {
      try {
        return await task.askAll(requests, { holdSeconds: holdMs / 1000 });
      } catch (error) {
        if (error instanceof ParkedError) return "parked";
        throw error;
      }
    },
    use: async (answer) => ((await task.use(answer)) === "now" ? "first" : "again"),
  };
}
