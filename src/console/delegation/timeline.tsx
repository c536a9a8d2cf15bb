import type { Delegation } from "../../schema/delegation.ts";
import type { DelegationEvent } from "../../schema/event.ts";
import { Empty } from "../ui/empty.tsx";
import { Problem } from "../ui/problem.tsx";
import { Windowed } from "../ui/windowed.tsx";
import { eventText, offsetText, pauseText, toneOf } from "./event-text.ts";
import { Lanes } from "./lanes.tsx";

interface Props {
  readonly delegation: Delegation;
  /** Null: not read yet. */
  readonly events: readonly DelegationEvent[] | null;
  readonly error: unknown;
}

/** The attempts as lanes, and every event with the time between it and the one before. */
export function Timeline({ delegation, events, error }: Props) {
  if (error !== null) return <Problem error={error} />;
  if (events === null) return <p class="loading">Reading the events …</p>;
  if (events.length === 0) return <Empty title="No events">Its events are no longer stored.</Empty>;
  const start = Date.parse(events[0]?.at ?? "");
  return (
    <>
      <Lanes events={events} delegation={delegation} />
      <Windowed items={events} keyOf={({ seq }) => String(seq)}>
        {(event, index) => (
          <div class={`event ${toneOf(event)}`} title={`${event.type} ${event.at}`}>
            <span class="event-at">{offsetText(Date.parse(event.at) - start)}</span>
            <span class="event-gap">{gapOf(event, events[index - 1])}</span>
            <bdi class="event-text said">{eventText(event)}</bdi>
          </div>
        )}
      </Windowed>
    </>
  );
}

/** The pause before an event, if it was long. */
function gapOf(event: DelegationEvent, before: DelegationEvent | undefined): string {
  const pause = before ? pauseText(Date.parse(event.at) - Date.parse(before.at)) : "";
  return pause && `⋯ ${pause}`;
}
