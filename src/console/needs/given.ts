import type { AnswerBody } from "../../schema/interrupt.ts";

/** An answer that was given, but not sent yet. */
export interface Given {
  readonly answer: AnswerBody;
  /** "Approved", for the reader. */
  readonly done: string;
}
