/** The axis of a waterfall: its ticks above the rows, and the lines of ticks, cuts and now behind them. */

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { now } from "../../data/clock.ts";
import { HOURS, largestUnit } from "../../ui/words.ts";
import { type Axis, ticksOf } from "./axis.ts";
import { COLUMN_HEADER, ROW } from "./roles.ts";

const percent = (share: number): string => `${(share * 100).toFixed(2)}%`;
const clock = (at: number): string => new Date(at).toLocaleString([], HOURS);

const HEAD = { ...ROW, class: "fall-head", "aria-rowindex": 1 };

interface HeadProps {
  readonly axis: Axis;
  readonly isLive: boolean;
}

export function AxisHead({ axis, isLive }: HeadProps) {
  const ticks = useMemo(() => ticksOf(axis), [axis]);
  return (
    <div {...HEAD}>
      <span {...COLUMN_HEADER} class="fall-name">
        Agent and task
      </span>
      <span {...COLUMN_HEADER} class="fall-bars">
        <span class="sr-only">Time since it was delegated</span>
        <span class="fall-lane">
          {ticks.map(({ at, place, label }) => (
            <small key={at} title={clock(at)} style={{ insetInlineStart: percent(place) }}>
              {label}
            </small>
          ))}
          {axis.cuts.map((cut) => (
            <CutLabel key={cut.from} axis={axis} from={cut.from} to={cut.to} isLive={isLive} />
          ))}
        </span>
      </span>
      <span {...COLUMN_HEADER} class="fall-time">
        Took
      </span>
    </div>
  );
}

interface CutProps {
  readonly axis: Axis;
  readonly from: number;
  readonly to: number;
  readonly isLive: boolean;
}

/** How long the silence was, or is. */
function CutLabel({ axis, from, to, isLive }: CutProps) {
  const until = isLive && to === axis.end ? now.value : to;
  const middle = (axis.place(from) + axis.place(to)) / 2;
  return (
    <small
      class="fall-cut-label"
      title={`Nothing happened from ${clock(from)} to ${clock(until)}`}
      style={{ insetInlineStart: percent(middle) }}
    >
      ⋯ {largestUnit(until - from)}
    </small>
  );
}

interface OverProps {
  readonly axis: Axis;
  readonly isLive: boolean;
  readonly children: ComponentChildren;
}

/** The rows, with the lines of the axis behind them. It alone is drawn every second: the bars of live work end at `--now`. */
export function Over({ axis, isLive, children }: OverProps) {
  const at = isLive ? axis.place(now.value) : 1;
  return (
    <div class="fall-over" style={{ "--now": at.toFixed(4) }}>
      <Lines axis={axis} />
      {isLive && (
        <div class="fall-lines" aria-hidden="true">
          <span class="fall-bars">
            <span class="fall-lane">
              <i class="now" style={{ insetInlineStart: percent(at) }} />
            </span>
          </span>
        </div>
      )}
      {children}
    </div>
  );
}

function Lines({ axis }: { readonly axis: Axis }) {
  return useMemo(
    () => (
      <div class="fall-lines" aria-hidden="true">
        <span class="fall-bars">
          <span class="fall-lane">
            {ticksOf(axis).map(({ at, place }) => (
              <i key={at} style={{ insetInlineStart: percent(place) }} />
            ))}
            {axis.cuts.map(({ from, to }) => (
              <i
                key={`cut ${from}`}
                class="cut"
                style={{
                  insetInlineStart: percent(axis.place(from)),
                  width: percent(axis.place(to) - axis.place(from)),
                }}
              />
            ))}
          </span>
        </span>
      </div>
    ),
    [axis],
  );
}
