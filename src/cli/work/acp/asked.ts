/** What an agent asks a person, as a question of the broker, and how the answer goes back. */
import { createHash } from "node:crypto";
import type { Answered, Question } from "../../../client/questions.ts";
import { sortedJson } from "../../../schema/sorted-json.ts";

export interface Asked<R> {
  /** What it is about, for people and for the agent. */
  readonly title: string;
  readonly digest: string;
  /** The id of the call that the conversation keeps until it is decided. */
  readonly call?: string | undefined;
  readonly question: Question;
  readonly settle: (answered: Answered) => Settled<R>;
  /** The response when the turn is canceled. */
  readonly canceled: R;
}

export interface Settled<R> {
  readonly response: R;
  /** True if the person did not allow what was asked. */
  readonly isDenied: boolean;
  /** What the response has no place for: it is the next prompt. */
  readonly say?: string | undefined;
  /** For people who watch. */
  readonly shown?: string | undefined;
}

/** The identity of what an agent asks. The caller decides what belongs to it. */
export const digestOf = (value: unknown): string =>
  createHash("sha256").update(sortedJson(value)).digest("hex");
