import { ErrandApiError } from "../../client/errors.ts";
import { lostSince } from "../data/connection.ts";
import { sentence } from "./words.ts";

const AWAY = [
  "The broker does not answer",
  "Try again in a moment; before you repeat a change, check whether it was made.",
] as const;
/** Errors whose own words are for programs, in words for people: what failed, and what to do. */
const IN_WORDS: Readonly<Record<string, readonly [string, string]>> = {
  agent_unknown: [
    "There is no agent of this name",
    "It may have been deleted: Agents lists those that exist.",
  ],
  connection_lost: AWAY,
  invalid_response: [
    "The page does not understand the broker's answer",
    "Reload the page: the broker may have been updated.",
  ],
  no_answer: AWAY,
  unreachable: AWAY,
};

/** Whether the broker gave no answer at all. */
export const isAbsence = (error: unknown): boolean =>
  error instanceof ErrandApiError && IN_WORDS[error.code] === AWAY;

/** Whether the change may have been made all the same. */
export const isUncertain = (error: unknown): boolean =>
  isAbsence(error) ||
  (error instanceof ErrandApiError && (error.details?.outcome === "unknown" || error.code === "internal"));

interface Props {
  readonly error: unknown;
  /** Repeats the action that failed. Only for one that is safe to repeat when its answer was lost. */
  readonly again?: () => void;
}

/** An error where it happened: what failed, and what to do next. */
export function Problem({ error, again }: Props) {
  if (error === null || error === undefined) return null;
  if (again && isUncertain(error) && lostSince.value === null) {
    return (
      <p class="problem back" role="alert">
        {isAbsence(error)
          ? "The broker is back. It was away, and may not have this."
          : "The broker failed at this, and may have it or not."}{" "}
        <button type="button" onClick={again}>
          Send again
        </button>
      </p>
    );
  }
  const [message, recovery] = wordsOf(error);
  return (
    <p class="problem" role="alert">
      <strong>{sentence(message)}</strong>{" "}
      {again && isAbsence(error) ? "You can send this again when it is back." : recovery}
    </p>
  );
}

function wordsOf(error: unknown): readonly [string, string] {
  if (error instanceof ErrandApiError) return IN_WORDS[error.code] ?? [error.message, error.recovery];
  return [error instanceof Error ? error.message : String(error), ""];
}
