/** Where the questions of an agent go, and where its approvals are used up: to the broker. */
import type { Answered, Question } from "../../../client/questions.ts";
import type { Work } from "../../../client/work.ts";
import { ParkedError } from "../../../lease-holder/lost.ts";

export interface Approvals {
  /**
   * The requests of one question, each with a `requestId`. `parked`: the lease is over, and the answer starts another run.
   */
  ask(requests: readonly Question[]): Promise<readonly Answered[] | "parked">;
  /** Called before an answer is handed to the agent. `again`: it was handed over before, so the call may have run. */
  use(answer: Pick<Answered, "interruptId" | "requestId">): Promise<"first" | "again">;
}

/** Holds a question for this long, with the agent's process and the lease. */
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
