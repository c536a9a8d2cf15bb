/**
 * Where the questions of an agent go, and where its approvals are used up. This is the one place that knows what the broker
 * can do: today a question ends the lease, and the worker itself remembers which answer it has handed over.
 */
import type { Answered, Question } from "../../../client/questions.ts";
import type { Work } from "../../../client/work.ts";
import { ParkedError } from "../../../lease-holder/lost.ts";
import type { Notes } from "./notes.ts";

export interface Approvals {
  /**
   * The requests of one question, each with a `requestId`. `parked`: the lease is over, and the answer starts another run.
   * Answers come at once if the delegator approved in advance.
   */
  ask(requests: readonly Question[]): Promise<readonly Answered[] | "parked">;
  /** Called before an answer is handed to the agent. `again`: it was handed over before, so the call may have run. */
  use(requestId: string): Promise<"first" | "again">;
}

export function localApprovals(task: Work, notes: Notes): Approvals {
  return {
    ask: async (requests) => {
      try {
        return await task.askAll(requests);
      } catch (error) {
        if (error instanceof ParkedError) return "parked";
        throw error;
      }
    },
    use: async (requestId) => ((await notes.use(requestId)) ? "first" : "again"),
  };
}
