/**
 * The questions that are open now, the oldest first, each as a snapshot of its delegation; then the questions as they are
 * asked. If events were lost, a RESET is yielded, and the open questions are read again. Each question is yielded once.
 * Limit: a RESET may repeat questions of delegations beyond the newest 100 000 that asked.
 */

import type { Delegator } from "../client/delegator.ts";
import type { EventFilter } from "../client/delegator-options.ts";
import { ErrandApiError } from "../client/errors.ts";
import type { Delegation } from "../schema/delegation.ts";
import type { StreamEvent } from "../schema/event.ts";
import { BoundedMap } from "../util/bounded.ts";
import { QUESTION_STATES } from "./rights.ts";

const REMEMBERED = 100_000;
const PAGE = 100;

interface WatchOptions {
  /** Starts with the questions asked after this event, instead of those that are open. */
  readonly after?: string | undefined;
  readonly signal: AbortSignal;
}

interface Snapshot {
  readonly type: "DELEGATION_SNAPSHOT";
  readonly delegation_id: string;
  readonly delegation: Delegation;
}

/** An item from which a watch cannot be resumed has no id. */
export type WatchedEvent = StreamEvent | Snapshot | { readonly type: "RESET" };

export async function* watchQuestions(
  delegator: Delegator,
  what: string | EventFilter,
  { after, signal }: WatchOptions,
): AsyncGenerator<WatchedEvent, void> {
  const watched = typeof what === "string" ? what : onlyStatus(what);
  const shown = new ShownQuestions();
  let cursor = after;
  if (typeof watched !== "string" && after === undefined) {
    // A question that is asked while the list is read follows as an event after the cursor.
    cursor = await delegator.cursor(watched, { signal });
    yield* withCursor(cursor, openQuestions(delegator, what, shown, signal));
  }
  for await (const event of delegator.watch(watched, { after: cursor, signal })) {
    if (event.type === "RESET") {
      yield* withCursor(event.id, afterReset(openQuestions(delegator, what, shown, signal)));
    } else if (isQuestion(event) && shown.addIfNew(event)) {
      yield event;
    }
  }
}

/**
 * Gives the cursor to the last item only. With the cursor of an earlier item, a reader that resumes would miss the rest.
 * With an older cursor, it gets the open questions again.
 */
async function* withCursor(
  id: string,
  items: AsyncIterable<Snapshot | { readonly type: "RESET" }>,
): AsyncGenerator<WatchedEvent, void> {
  let last: Snapshot | { readonly type: "RESET" } | undefined;
  for await (const item of items) {
    if (last !== undefined) yield last;
    last = item;
  }
  if (last !== undefined) yield { id, ...last };
}

async function* afterReset(questions: AsyncIterable<Snapshot>) {
  yield { type: "RESET" } as const;
  yield* questions;
}

const onlyStatus = (filter: EventFilter): EventFilter => ({ ...filter, types: ["DELEGATION_STATUS"] });

/** The newest question of each delegation that was yielded, and the delegation's version at that time. */
class ShownQuestions {
  readonly #newest = new BoundedMap<
    string,
    { readonly version: number; readonly question: string | undefined }
  >(REMEMBERED);

  /** Whether the event shows a question that was not yielded; it then counts as yielded. */
  addIfNew(event: Exclude<WatchedEvent, { type: "RESET" }>): boolean {
    const last = this.#newest.get(event.delegation_id);
    if (event.type === "DELEGATION_SNAPSHOT") {
      const { version, interrupt } = event.delegation;
      this.#newest.set(event.delegation_id, { version, question: interrupt?.id });
      return interrupt?.id !== last?.question;
    }
    // The snapshot was read after this event.
    if (last !== undefined && event.seq <= last.version) return false;
    const question = event.status === "interrupted" ? event.interrupt.id : undefined;
    this.#newest.set(event.delegation_id, { version: event.seq, question });
    return true;
  }
}

async function* openQuestions(
  delegator: Delegator,
  what: string | EventFilter,
  shown: ShownQuestions,
  signal: AbortSignal,
): AsyncGenerator<Snapshot, void> {
  const ids = typeof what === "string" ? [what] : await idsWithOpenQuestion(delegator, what, signal);
  for (const id of ids) {
    const delegation = await delegator.get(id, { signal }).catch(unlessGone);
    if (!delegation?.interrupt) continue;
    const event: Snapshot = { type: "DELEGATION_SNAPSHOT", delegation_id: id, delegation };
    if (shown.addIfNew(event)) yield event;
  }
}

/** The oldest first. Only ids are kept, because a delegation may have megabytes. */
async function idsWithOpenQuestion(
  delegator: Delegator,
  { target, delegator: from, context_id }: EventFilter,
  signal: AbortSignal,
): Promise<string[]> {
  const filter = { target, delegator: from, context_id, state: QUESTION_STATES };
  const ids: string[] = [];
  for await (const { id } of delegator.list(filter, { pageSize: PAGE, signal })) ids.push(id);
  return ids.reverse();
}

const isQuestion = (event: Exclude<StreamEvent, { type: "RESET" }>): boolean =>
  event.type === "DELEGATION_SNAPSHOT" ? event.delegation.interrupt !== null : event.status === "interrupted";

function unlessGone(error: unknown): undefined {
  if (!(error instanceof ErrandApiError) || error.status !== 404) throw error;
}
