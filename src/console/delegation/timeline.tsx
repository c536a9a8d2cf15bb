import { useRef } from "preact/hooks";
import type { Delegation } from "../../schema/delegation.ts";
import type { DelegationEvent, StreamEvent } from "../../schema/event.ts";
import type { Connection } from "../data/connection.ts";
import { Empty } from "../ui/empty.tsx";
import { Problem } from "../ui/problem.tsx";
import { useLoaded } from "../ui/use-loaded.ts";
import { PLAIN, Windowed } from "../ui/windowed.tsx";
import { duration } from "../ui/words.ts";
import { eventText, toneOf } from "./event-text.ts";
import { Lanes } from "./lanes.tsx";

const PAGE = 1000;

/** The attempts as lanes, and every event with the time between it and the one before. */
export function Timeline({ delegation }: { readonly delegation: Delegation }) {
  const { id, version } = delegation;
  const { value, error } = useEvents(id, version);
  if (error !== null) return <Problem error={error} />;
  if (value === null) return <p class="loading">Reading the events …</p>;
  if (value.length === 0) return <Empty title="No events">Its events are no longer stored.</Empty>;
  // A long list draws only the rows in view, so all its rows need the same height.
  const whole = value.length > PLAIN ? "" : "whole";
  const start = Date.parse(value[0]?.at ?? "");
  return (
    <>
      <Lanes events={value} delegation={delegation} />
      <Windowed
        items={value.map((event, index) => ({ event, before: value[index - 1] }))}
        rowHeight={28}
        keyOf={keyOf}
      >
        {({ event, before }) => (
          <div class={`event ${toneOf(event)} ${whole}`} title={`${event.type} ${event.at}`}>
            <span class="event-at">{offset(Date.parse(event.at) - start)}</span>
            <span class="event-gap">{before ? gap(Date.parse(event.at) - Date.parse(before.at)) : ""}</span>
            <bdi class="event-text said">{eventText(event)}</bdi>
          </div>
        )}
      </Windowed>
    </>
  );
}

const keyOf = ({ event }: { readonly event: DelegationEvent }): string => String(event.seq);

const MINUTE_MS = 60_000;
/** The time since the start. */
const offset = (ms: number): string => (ms < MINUTE_MS ? `+${(ms / 1000).toFixed(1)} s` : `+${duration(ms)}`);
/** The text of a pause; empty for a short one. */
const gap = (ms: number): string => (ms >= MINUTE_MS ? `⋯ ${duration(ms)}` : "");

/** Every version has one more event: only those after the last one are read. */
function useEvents(id: string, version: number) {
  const found = useRef<readonly DelegationEvent[]>([]);
  const after = useRef("0");
  const read = async ({ pages }: Connection, signal: AbortSignal) => {
    for (;;) {
      const events = await pages.events(id, PAGE, signal, after.current);
      found.current = [...found.current, ...events.filter(isMove)];
      after.current = events.at(-1)?.id ?? after.current;
      if (events.length < PAGE) return found.current;
    }
  };
  return useLoaded(id, read, version);
}

const isMove = (event: StreamEvent): event is DelegationEvent =>
  event.type !== "DELEGATION_SNAPSHOT" && event.type !== "RESET";
