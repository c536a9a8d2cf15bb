/**
 * The questions that are open now, the oldest first, each as a snapshot of its delegation; then the questions as they are
 * asked. If events were lost (RESET), the open questions are read again. Each question is yielded once. Limit: a RESET may
 * repeat questions of delegations beyond the newest 100 000 that asked.
 */

import type { Delegator } from "../client/delegator.ts";
import type { EventFilter } from "../client/delegator-options.ts";
import { ErrandApiError } from "../client/errors.ts";
import { interruptSchema } from "../schema/delegation.ts";
import type { StreamEvent } from "../schema/event.ts";
import { BoundedMap } from "../util/bounded.ts";
import { QUESTION_STATES } from "./rights.ts";

const REMEMBERED = 100_000;
const PAGE = 100;

interface WatchOptions {
  /** Starts with the questions asked after this event, instead of those that are open. */
  readonly after?: string | undefined;
  /** Called when events were lost, before the open questions are read again. */
  readonly onReset: () => void;
  readonly signal: AbortSignal;
}

export async function* watchQuestions(
  delegator: Delegator,
  what: string | EventFilter,
  { after, onReset, signal }: WatchOptions,
): AsyncGenerator<StreamEvent, void> {
  const watched = typeof what === "string" ? what : onlyStatus(what);
  const yielded = new Yielded();
  let cursor = after;
  if (typeof watched !== "string" && after === undefined) {
    // A question that is asked while the list is read follows as an event after the cursor.
    cursor = await delegator.cursor(watched, { signal });
    yield* openQuestions(delegator, what, { cursor, yielded, signal });
  }
  for await (const event of delegator.watch(watched, { after: cursor, signal })) {
    if (event.type === "RESET") {
      onReset();
      yield* openQuestions(delegator, what, { cursor: event.id, yielded, signal });
    } else if (isQuestion(event) && yielded.isNew(event)) {
      yield event;
    }
  }
}

const onlyStatus = (filter: EventFilter): EventFilter => ({ ...filter, types: ["DELEGATION_STATUS"] });

/** The newest question of each delegation that was yielded, and the delegation's version at that time. */
class Yielded {
  readonly #newest = new BoundedMap<
    string,
    { readonly version: number; readonly question: string | undefined }
  >(REMEMBERED);

  /** Whether the event shows a question that was not yielded; it then counts as yielded. */
  isNew(event: Exclude<StreamEvent, { type: "RESET" }>): boolean {
    const last = this.#newest.get(event.delegation_id);
    if (event.type === "DELEGATION_SNAPSHOT") {
      const { version, interrupt } = event.delegation;
      this.#newest.set(event.delegation_id, { version, question: interrupt?.id });
      return interrupt?.id !== last?.question;
    }
    // The snapshot was read after this event.
    if (last !== undefined && event.seq <= last.version) return false;
    const question = interruptSchema.safeParse(event.interrupt).data?.id;
    this.#newest.set(event.delegation_id, { version: event.seq, question });
    return true;
  }
}

async function* openQuestions(
  delegator: Delegator,
  what: string | EventFilter,
  { cursor, yielded, signal }: { cursor: string; yielded: Yielded; signal: AbortSignal },
): AsyncGenerator<StreamEvent, void> {
  const ids = typeof what === "string" ? [what] : await idsThatAsk(delegator, what, signal);
  for (const id of ids) {
    const delegation = await delegator.get(id, { signal }).catch(unlessGone);
    if (!delegation?.interrupt) continue;
    const event: StreamEvent = { id: cursor, type: "DELEGATION_SNAPSHOT", delegation_id: id, delegation };
    if (yielded.isNew(event)) yield event;
  }
}

/** The oldest first. Only ids are kept, because a delegation may have megabytes. */
async function idsThatAsk(
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
