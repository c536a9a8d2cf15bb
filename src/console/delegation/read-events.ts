/** Reads the events of a delegation page by page. */
import type { Pages } from "../../client/pages.ts";
import type { DelegationEvent, StreamEvent } from "../../schema/event.ts";

const PAGE = 1000;

/** The events that were read so far. A failed reading keeps its pages here, and the next one continues after them. */
export interface EventLog {
  events: readonly DelegationEvent[];
  after: string;
}

/** Adds the events up to the version of the delegation, which is the number of its newest event. Returns all. */
export async function readEvents(
  pages: Pick<Pages, "events">,
  { id, version }: { readonly id: string; readonly version: number },
  log: EventLog,
  signal: AbortSignal,
): Promise<readonly DelegationEvent[]> {
  while ((log.events.at(-1)?.seq ?? 0) < version) {
    const page = await pages.events(id, PAGE, signal, log.after);
    log.events = [...log.events, ...page.filter(isMove)];
    const last = page.at(-1)?.id ?? log.after;
    // The others are no longer stored.
    if (last === log.after) break;
    log.after = last;
  }
  return log.events;
}

export const isMove = (event: StreamEvent): event is DelegationEvent =>
  event.type !== "DELEGATION_SNAPSHOT" && event.type !== "RESET";
