import type { Delegation } from "../../schema/delegation.ts";
import type { DelegationEvent } from "../../schema/event.ts";
import { Empty } from "../ui/empty.tsx";
import { Problem } from "../ui/problem.tsx";
import { PLAIN, Windowed } from "../ui/windowed.tsx";
import { eventText, offsetText, pauseText, toneOf } from "./event-text.ts";
import { Lanes } from "./lanes.tsx";
import { useEvents } from "./use-events.ts";

/** The attempts as lanes, and every event with the time between it and the one before. */
export function Timeline({ delegation }: { readonly delegation: Delegation }) {
  const { value, error } = useEvents(delegation);
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
            <span class="event-at">{offsetText(Date.parse(event.at) - start)}</span>
            <span class="event-gap">{gapOf(event, before)}</span>
            <bdi class="event-text said">{eventText(event)}</bdi>
          </div>
        )}
      </Windowed>
    </>
  );
}

const keyOf = ({ event }: { readonly event: DelegationEvent }): string => String(event.seq);

/** The pause before an event, if it was long. */
function gapOf(event: DelegationEvent, before: DelegationEvent | undefined): string {
  const pause = before ? pauseText(Date.parse(event.at) - Date.parse(before.at)) : "";
  return pause && `⋯ ${pause}`;
}
