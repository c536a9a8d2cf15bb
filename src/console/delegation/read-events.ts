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
  const isComplete = () => (log.events.at(-1)?.seq ?? 0) >= version;
  if (isComplete()) return log.events;
  for await (const found of eventPages(pages, id, log, signal)) {
    log.events = [...log.events, ...found];
    if (isComplete()) break;
  }
  return log.events;
}

/** The events after `log.after`, which follows, a page at a time. */
export async function* eventPages(
  pages: Pick<Pages, "events">,
  id: string,
  log: Pick<EventLog, "after">,
  signal?: AbortSignal,
): AsyncGenerator<readonly DelegationEvent[], void> {
  for (let isEnd = false; !isEnd; ) {
    const page = await pages.events(id, PAGE, signal, log.after);
    const last = page.at(-1)?.id ?? log.after;
    // The others are no longer stored.
    isEnd = last === log.after;
    log.after = last;
    yield page.filter(isMove);
  }
}

const isMove = (event: StreamEvent): event is DelegationEvent =>
  event.type !== "DELEGATION_SNAPSHOT" && event.type !== "RESET";
