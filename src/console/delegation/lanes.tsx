import { useMemo } from "preact/hooks";
import { type Delegation, isTerminal } from "../../schema/delegation.ts";
import type { DelegationEvent } from "../../schema/event.ts";
import { now } from "../data/clock.ts";
import { Said } from "../ui/said.tsx";
import { useMark } from "../ui/use-mark.ts";
import { count } from "../ui/words.ts";
import { eventText, offsetText, pauseText, toneOf } from "./event-text.ts";
import {
  type Break,
  type Lane,
  type Line,
  lanesOf,
  lineOf,
  nearestOf,
  scaleOf,
  type Tick,
} from "./lane-data.ts";

/** The eye cannot tell more ticks than this apart. */
const MAX_TICKS = 300;

interface Props {
  readonly events: readonly DelegationEvent[];
  readonly delegation: Delegation;
}

/**
 * One lane for each attempt: its leases as bars, its events as ticks. Long pauses are drawn short, and broken. The pointer
 * and the arrow keys mark a tick, and its text is shown beneath.
 */
export function Lanes({ events, delegation }: Props) {
  const end = isTerminal(delegation.state) ? Date.parse(delegation.updated_at) : now.value;
  // A delegation may have 10 000 events. What concerns all of them is done once, not every second or as the pointer moves.
  const base = useMemo(() => baseOf(events), [events]);
  const { scale, lanes, ticks } = useMemo(() => drawingOf(base, end), [base, end]);
  const { at, ...handlers } = useMark(ticks.length, ({ clientX, target }, { left, width }) => {
    const lane = target instanceof Element ? target.closest("[data-attempt]") : null;
    const attempt = Number(lane?.getAttribute("data-attempt"));
    return nearestOf(ticks, attempt, (clientX - left) / width);
  });
  const tick = ticks[at ?? ticks.length - 1];
  const text = tick ? textOf(tick.event, events) : "";
  const marked = at === null ? undefined : tick;
  return (
    <>
      <div
        class={scale.breaks.length > 0 ? "lanes broken" : "lanes"}
        role="slider"
        tabIndex={0}
        aria-label={`Events over time, ${count(lanes.length, "attempt")}`}
        aria-valuemin={1}
        aria-valuemax={ticks.length}
        aria-valuenow={(at ?? ticks.length - 1) + 1}
        aria-valuetext={text}
        {...handlers}
      >
        {lanes.map((lane) => (
          <OneLane
            key={lane.attempt}
            lane={lane}
            place={scale.place}
            marked={marked?.attempt === lane.attempt ? marked : undefined}
          />
        ))}
        {scale.breaks.map((one) => (
          <span class="break" key={one.at} style={{ insetInlineStart: percent(one.at) }} title={one.label} />
        ))}
        {labelsOf(scale.breaks).map((one) => (
          <small class="break-label" key={one.at} style={{ insetInlineStart: percent(one.at) }}>
            {one.label}
          </small>
        ))}
      </div>
      <p class="lane-text" aria-hidden="true">
        {at === null ? "Point at a mark, or use the arrow keys." : <Said>{text}</Said>}
      </p>
    </>
  );
}

interface LaneWithTicks extends Lane {
  readonly ticks: readonly Tick[];
}

interface Base {
  readonly line: Line;
  readonly lanes: readonly Lane[];
}

const baseOf = (events: readonly DelegationEvent[]): Base => ({
  line: lineOf(events.map(({ at }) => Date.parse(at))),
  lanes: lanesOf(events),
});

function drawingOf(base: Base, end: number) {
  const scale = scaleOf(base.line, end);
  const lanes = base.lanes.map((lane): LaneWithTicks => {
    const { attempt, events: own } = lane;
    const toTick = (event: DelegationEvent) => ({ event, attempt, place: scale.place(Date.parse(event.at)) });
    return { ...lane, ticks: own.slice(-MAX_TICKS).map(toTick) };
  });
  return { scale, lanes, ticks: lanes.flatMap((lane) => lane.ticks) };
}

/** An event with its time and the pause before it. */
function textOf(event: DelegationEvent, events: readonly DelegationEvent[]): string {
  const ms = Date.parse(event.at);
  // Events are numbered without gaps; the oldest may be gone.
  const before = events[event.seq - (events[0]?.seq ?? 1) - 1];
  const pause = before ? pauseText(ms - Date.parse(before.at)) : "";
  return [
    offsetText(ms - Date.parse(events[0]?.at ?? "")),
    pause && `after a pause of ${pause}`,
    eventText(event),
  ]
    .filter(Boolean)
    .join(" · ");
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

interface LaneProps {
  readonly lane: LaneWithTicks;
  readonly place: (ms: number) => number;
  readonly marked: Tick | undefined;
}

function OneLane({ lane, place, marked }: LaneProps) {
  const drawn = useMemo(
    () => [
      ...lane.leases.map(([from, to]) => {
        const width = percent((to === null ? 1 : place(to)) - place(from));
        return (
          <span
            class="lease"
            key={`lease ${from}`}
            style={{ insetInlineStart: percent(place(from)), width }}
          />
        );
      }),
      ...lane.ticks.map((tick) => <TickMark key={tick.event.seq} tick={tick} />),
    ],
    [lane],
  );
  return (
    <div class="lane" data-attempt={lane.attempt}>
      {drawn}
      {marked && <TickMark tick={marked} isMarked />}
    </div>
  );
}

function TickMark({ tick, isMarked = false }: { readonly tick: Tick; readonly isMarked?: boolean }) {
  const { event, place } = tick;
  return (
    <span
      class={`tick ${toneOf(event)} ${isMarked ? "marked" : ""}`}
      style={{ insetInlineStart: percent(place) }}
    />
  );
}
