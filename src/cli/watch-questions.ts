/**
 * The questions that are open now, the oldest first, each as a snapshot of its delegation; then the questions as they are
 * asked. Limit: of more than 1 000 open questions, the newest.
 */

import type { Delegator } from "../client/delegator.ts";
import type { EventFilter } from "../client/delegator-options.ts";
import { ErrandApiError } from "../client/errors.ts";
import type { StreamEvent } from "../schema/event.ts";
import { QUESTION_STATES } from "./rights.ts";

const MAX_OPEN = 1000;
const PAGE = 100;

interface WatchOptions {
  /** Then nothing is read before: the questions after this event follow. */
  readonly after?: string | undefined;
  readonly signal: AbortSignal;
}

export async function* watchQuestions(
  delegator: Delegator,
  what: string | EventFilter,
  { after, signal }: WatchOptions,
): AsyncGenerator<StreamEvent, void> {
  if (typeof what === "string" || after !== undefined) {
    for await (const event of delegator.watch(typeof what === "string" ? what : onlyStatus(what), {
      after,
      signal,
    }))
      if (isQuestion(event)) yield event;
    return;
  }
  // The cursor first and the list second, so that nothing falls between them.
  const cursor = await delegator.cursor(onlyStatus(what), { signal });
  const shown = new Map<string, number>();
  for (const id of await openIds(delegator, what, signal)) {
    const delegation = await delegator.get(id, { signal }).catch(unlessGone);
    if (!delegation?.interrupt) continue;
    shown.set(id, delegation.version);
    yield { id: cursor, type: "DELEGATION_SNAPSHOT", delegation_id: id, delegation };
  }
  for await (const event of delegator.watch(onlyStatus(what), { after: cursor, signal }))
    if (isQuestion(event) && !wasShown(shown, event)) yield event;
}

const onlyStatus = (filter: EventFilter): EventFilter => ({ ...filter, types: ["DELEGATION_STATUS"] });

/** Only the ids, because whole delegations may have megabytes. */
async function openIds(
  delegator: Delegator,
  { target, delegator: from, context_id }: EventFilter,
  signal: AbortSignal,
): Promise<string[]> {
  const filter = { target, delegator: from, context_id, state: QUESTION_STATES };
  const ids: string[] = [];
  for await (const { id } of delegator.list(filter, { pageSize: PAGE, signal })) {
    ids.push(id);
    if (ids.length === MAX_OPEN) break;
  }
  return ids.reverse();
}

function isQuestion(event: StreamEvent): boolean {
  if (event.type === "RESET") return false;
  return event.type === "DELEGATION_SNAPSHOT"
    ? event.delegation.interrupt !== null
    : event.status === "interrupted";
}

/** What happened after the cursor and before the delegation was read. */
function wasShown(shown: ReadonlyMap<string, number>, event: StreamEvent): boolean {
  if (event.type === "RESET" || event.type === "DELEGATION_SNAPSHOT") return false;
  return event.seq <= (shown.get(event.delegation_id) ?? 0);
}

function unlessGone(error: unknown): undefined {
  if (!(error instanceof ErrandApiError) || error.status !== 404) throw error;
}
