/**
 * Waits for a delegation's result or question: sends long-poll requests, one after the other. A question on which the same
 * object has voted does not end the wait: it waits for others. Limit: it does not know the votes of other objects.
 */
import { type Delegation, isPending, LIVE_STATES } from "../schema/delegation.ts";
import type { StreamEvent } from "../schema/event.ts";
import type { QuestionVotes } from "../schema/votes.ts";
import { pauseIfEarly, TimeLimit } from "../util/timing.ts";
import type { GetOptions, WaitOptions } from "./delegator-options.ts";
import { type ErrandApiError, localError } from "./errors.ts";
import { durationText } from "./words.ts";

/** Below the idle timeout of common proxies. */
const HOLD_SECONDS = 25;
/** How late the last answer may be before the wait gives up on it. */
const GRACE_MS = 1000;

/** The most delegations whose own vote is remembered. */
const REMEMBERED = 1024;

/** By delegation: the votes (`votesKey`) that this object's own vote is one of. */
export type OwnVotes = Map<string, string>;

/** Remembers an answer that was a vote. */
export function noteVote(own: OwnVotes, { id, interrupt }: Delegation): void {
  own.delete(id);
  if (!interrupt?.votes) return;
  own.set(id, votesKey(interrupt.id, interrupt.votes));
  const [oldest = ""] = own.keys();
  if (own.size > REMEMBERED) own.delete(oldest);
}

/** The same until another approval voids the votes: then the first vote is another. */
function votesKey(interruptId: string, { answers, given: [first] }: QuestionVotes): string {
  return JSON.stringify([interruptId, answers, first?.by, first?.at]);
}

interface Reads {
  /** Reads the delegation, and waits on the broker for `waitSeconds`. */
  readonly get: (options: GetOptions) => Promise<Delegation>;
  readonly watch: (options: { readonly signal: AbortSignal }) => AsyncIterable<StreamEvent>;
  readonly own: OwnVotes;
}

export async function waitForResult(
  id: string,
  { timeoutSeconds = Number.POSITIVE_INFINITY, signal }: WaitOptions,
  { get, watch, own }: Reads,
): Promise<Delegation> {
  const endsAt = performance.now() + timeoutSeconds * 1000;
  const limit = new TimeLimit(timeoutSeconds * 1000 + GRACE_MS, signal);
  try {
    for (;;) {
      const askedAt = performance.now();
      const holdSeconds = Math.min(HOLD_SECONDS, Math.max(0, (endsAt - askedAt) / 1000));
      const delegation = await get({ waitSeconds: holdSeconds, signal: limit.signal });
      const { interrupt } = delegation;
      const isVoted = interrupt?.votes && own.get(id) === votesKey(interrupt.id, interrupt.votes);
      if (isVoted) {
        await votedOrClosed(watch({ signal: limit.signal }), delegation);
        continue;
      }
      if (!isPending(delegation.state)) return delegation;
      if (performance.now() >= endsAt) throw waitRanOut(id, timeoutSeconds, delegation.state);
      await pauseIfEarly(askedAt, limit.signal);
    }
  } catch (error) {
    throw limit.expired ? waitRanOut(id, timeoutSeconds) : error;
  } finally {
    limit.close();
  }
}

/** Resolves when somebody has voted since the delegation was read, or the question is no longer open. */
async function votedOrClosed(events: AsyncIterable<StreamEvent>, { version }: Delegation): Promise<void> {
  for await (const event of events) {
    if (event.type === "RESET") return;
    if (event.type === "DELEGATION_SNAPSHOT") {
      if (event.delegation.version !== version) return;
    } else if (event.status === "voted" || !event.state.endsWith("_required")) return;
  }
}

function waitRanOut(id: string, timeoutSeconds: number, state = LIVE_STATES.join(" or ")): ErrandApiError {
  return localError({
    code: "wait_ran_out",
    category: "TIMEOUT",
    detail: `${id} is not finished after ${durationText(timeoutSeconds * 1000)} (${state})`,
    recovery: "The delegation continues: wait again, or cancel it.",
    retryable: true,
  });
}
