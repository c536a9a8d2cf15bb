/** What the head of a delegation says about how it ended, and its place in the queue. */
import { nameOf } from "../../client/words.ts";
import type { Message } from "../../schema/a2a.ts";
import type { Delegation, DelegationError } from "../../schema/delegation.ts";
import { ownHelp } from "../ui/failures.ts";
import { sentence, stepOf } from "../ui/words.ts";

export interface Ending {
  /** By whom or why, without a full stop: `alice canceled it`. */
  readonly what: string;
  /** The message of the agent, or the reason of the person; empty if there is none. */
  readonly words: string;
}

const CANCELED = /^Canceled by ([a-z]+(?::[a-z0-9][a-z0-9_-]*)?)(?:: ([\s\S]*))?$/;

/** How a canceled or rejected delegation ended. */
export function endingOf({ state, target, error }: Pick<Delegation, "state" | "target" | "error">): Ending {
  const message = error?.message ?? "";
  if (state === "rejected") return { what: `${target} refused it`, words: message };
  const [, by, reason = ""] = CANCELED.exec(message) ?? [];
  if (by === undefined) return { what: "It was canceled", words: message };
  return { what: `${nameOf(by)} canceled it`, words: reason };
}

/** These end also work that no worker has started. */
const UNSTARTED = ["not_picked_up", "deadline_exceeded", "interrupt_expired"];

/** `It was at 5/8 running the tests, in attempt 2 of 3.` Empty if nothing is known. */
export function whereText({
  error,
  attempt,
  max_attempts,
  progress,
}: Pick<Delegation, "error" | "attempt" | "max_attempts" | "progress">): string {
  const step = stepOf({ progress });
  const isKnown = attempt > 1 || (max_attempts > 1 && !UNSTARTED.includes(error?.code ?? ""));
  const tries = isKnown ? `attempt ${attempt} of ${max_attempts}` : "";
  if (step === "") return tries === "" ? "" : `In ${tries}.`;
  return sentence(`It was at ${[step, tries && `in ${tries}`].filter(Boolean).join(", ")}`);
}

/** What helps, and whose words the message is. `mayRepeat`: the reader has the buttons that it names. */
export function adviceOf(
  { target, error }: { readonly target: string; readonly error: Pick<DelegationError, "code" | "recovery"> },
  mayRepeat: boolean,
): string {
  const help = ownHelp(error);
  if (help !== undefined) return help;
  const next = "Try again if its cause is gone, or delegate again with changes.";
  return `The message is from ${target}.${mayRepeat ? ` ${next}` : ""}`;
}

type Queued = Pick<Delegation, "id" | "priority" | "created_at" | "not_before_at" | "attempt">;

/**
 * Its place among those that wait for the same agent, counted from 1. Null: the reader does not see the whole queue, or
 * its order is not known, because some of it waits for a further attempt.
 */
export function placeIn(queue: readonly Queued[], id: string, waiting: number, now: number): number | null {
  const readyAt = ({ created_at, not_before_at }: Queued) =>
    Math.max(Date.parse(created_at), Date.parse(not_before_at ?? "") || 0);
  // The clock of the page may be behind that of the broker.
  const ready = queue.filter((one) => one.not_before_at === null || readyAt(one) <= now);
  const own = ready.find((one) => one.id === id);
  if (!own || ready.length !== waiting || ready.some(({ attempt }) => attempt > 1)) return null;
  const isBefore = (one: Queued) =>
    one.priority === own.priority ? readyAt(one) < readyAt(own) : one.priority > own.priority;
  return 1 + ready.filter(isBefore).length;
}

/** A failed attempt often has a reply without words. */
export const hasContent = ({ parts }: Pick<Message, "parts">): boolean =>
  parts.some(({ text }) => text !== "");
