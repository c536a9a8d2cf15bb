import { type Delegation, isTerminal } from "../../schema/delegation.ts";
import type { DelegationEvent } from "../../schema/event.ts";
import { now } from "../data/clock.ts";
import { eventText, toneOf } from "./event-text.ts";
import { type Break, compress, type Lane, lanesOf } from "./lane-data.ts";

/** Ticks beyond this number add nothing that the eye can tell apart. */
const MAX_TICKS = 300;

interface Props {
  readonly events: readonly DelegationEvent[];
  readonly delegation: Delegation;
}

/** One lane for each attempt: its leases as bars, its events as ticks. Long pauses are drawn short, and broken. */
export function Lanes({ events, delegation }: Props) {
  const end = isTerminal(delegation.state) ? Date.parse(delegation.updated_at) : now.value;
  const scale = compress([...events.map(({ at }) => Date.parse(at)), end]);
  return (
    <div
      class={scale.breaks.length > 0 ? "lanes broken" : "lanes"}
      role="img"
      aria-label={`The attempts over time: ${delegation.attempt}`}
    >
      {lanesOf(events, end).map((lane) => (
        <OneLane key={lane.attempt} lane={lane} place={scale.place} />
      ))}
      {scale.breaks.map(({ at, label }) => (
        <span class="break" key={at} style={{ insetInlineStart: percent(at) }} title={label} />
      ))}
      {labelsOf(scale.breaks).map(({ at, label }) => (
        <small class="break-label" key={at} style={{ insetInlineStart: percent(at) }}>
          {label}
        </small>
      ))}
    </div>
  );
}

/** Closer to each other, two labels would overlap. */
const APART = 0.15;

/** The labels of the pauses, without those that would overlap. */
function labelsOf(breaks: readonly Break[]): readonly Break[] {
  const shown: Break[] = [];
  for (const one of breaks) if (one.at - (shown.at(-1)?.at ?? -1) >= APART) shown.push(one);
  return shown;
}

const percent = (share: number): string => `${(share * 100).toFixed(2)}%`;

function OneLane({ lane, place }: { readonly lane: Lane; readonly place: (ms: number) => number }) {
  return (
    <div class="lane">
      {lane.leases.map(([from, to]) => (
        <span
          class="lease"
          key={from}
          style={{ insetInlineStart: percent(place(from)), width: percent(place(to) - place(from)) }}
        />
      ))}
      {lane.events.slice(-MAX_TICKS).map((event) => (
        <span
          class={`tick ${toneOf(event)}`}
          key={event.seq}
          style={{ insetInlineStart: percent(place(Date.parse(event.at))) }}
          title={eventText(event)}
        />
      ))}
    </div>
  );
}
