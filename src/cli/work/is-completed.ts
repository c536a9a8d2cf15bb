/** Whether work is done. Only then has its program shown that it can work. */
import { QuestionOutcome } from "../../client/questions.ts";
import type { Outcome } from "../../client/work.ts";

export const isCompleted = (outcome: Outcome): boolean =>
  typeof outcome === "object" &&
  !(outcome instanceof QuestionOutcome) &&
  "state" in outcome &&
  outcome.state === "completed";
