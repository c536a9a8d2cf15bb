/** Reads the events of a delegation page by page. */
import type { Pages } from "../../client/pages.ts";
import { type DelegationEvent, type StreamEvent, TERMINAL_EVENT_TYPES } from "../../schema/event.ts";

const PAGE = 1000;

/** What is read already. A read that fails keeps its pages here, and the next one continues after them. */
export interface ReadEvents {
  events: readonly DelegationEvent[];
  after: string;
}

/** Adds the events after those that are known, and returns all. */
export async function readEvents(
  pages: Pick<Pages, "events">,
  id: string,
  known: ReadEvents,
  signal: AbortSignal,
): Promise<readonly DelegationEvent[]> {
  // After the final event the broker answers 204, because nothing can follow it.
  while (!TERMINAL_EVENT_TYPES.includes(known.events.at(-1)?.type ?? "")) {
    const page = await pages.events(id, PAGE, signal, known.after);
    known.events = [...known.events, ...page.filter(isMove)];
    known.after = page.at(-1)?.id ?? known.after;
    if (page.length < PAGE) break;
  }
  return known.events;
}

const isMove = (event: StreamEvent): event is DelegationEvent =>
  event.type !== "DELEGATION_SNAPSHOT" && event.type !== "RESET";
