/**
 * One chart, drawn as SVG: stacked bars or lines over the buckets of a period. Its text is HTML, because the
 * drawing is stretched to any width, which would distort it.
 */
import { useMark } from "../ui/use-mark.ts";
import { HOURS, largestUnit } from "../ui/words.ts";
import { topOf } from "./scale.ts";

export interface Series {
  readonly name: string;
  /** What it means, and so its colour and pattern: a class of charts.css. */
  readonly look: "sent" | "queued" | "working" | "completed" | "failed" | "canceled" | "time" | "time95";
  /** One value for each bucket; null: nothing was measured. */
  readonly values: readonly (number | null)[];
}

interface Props {
  readonly title: string;
  readonly note: string;
  readonly kind: "bars" | "lines";
  /** The instants at which the buckets begin. */
  readonly times: readonly string[];
  readonly series: readonly Series[];
  /** A value with its unit. */
  readonly show?: (value: number) => string;
  /** Round values at which the scale may end. */
  readonly tops?: readonly number[];
  /** The total of all buckets, for the head and for screen readers. */
  readonly sum: string;
}

const WIDTH = 600;
const HEIGHT = 120;

export function Chart({ title, note, kind, times, series, show = plain, tops, sum }: Props) {
  const columns = times.map((_, index) => series.map(({ values }) => values[index] ?? null));
  const height = (column: readonly (number | null)[]) =>
    kind === "bars"
      ? column.reduce<number>((all, value) => all + (value ?? 0), 0)
      : Math.max(0, ...column.map(Number));
  const most = Math.max(0, ...columns.map(height));
  const top = topOf(most, tops);
  const step = WIDTH / Math.max(1, times.length);
  const y = (value: number) => HEIGHT - (value / top) * HEIGHT;
  const { at, ...handlers } = useMark(times.length, ({ clientX }, { left, width }) =>
    Math.floor(((clientX - left) / width) * times.length),
  );
  const text = titleOf(
    times[at ?? times.length - 1] ?? "",
    columns[at ?? times.length - 1] ?? [],
    series,
    show,
  );
  return (
    <figure class="chart">
      <figcaption>
        <h2>{title}</h2>
        <b>{sum}</b>
        <small>{note}</small>
      </figcaption>
      {series.length > 1 && (
        <ul class="legend">
          {series.map(({ name, look }) => (
            <li key={name}>
              <Swatch kind={kind} look={look} /> {name}
            </li>
          ))}
        </ul>
      )}
      <div
        class="plot"
        role="slider"
        tabIndex={0}
        aria-label={`${title}: ${sum}`}
        aria-valuemin={0}
        aria-valuemax={times.length - 1}
        aria-valuenow={at ?? times.length - 1}
        aria-valuetext={text}
        {...handlers}
      >
        <span class="chart-top" aria-hidden="true">
          {show(top)}
        </span>
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
          <path class="grid" d={`M0 0H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT}H${WIDTH}`} />
          {kind === "bars"
            ? columns.map((column, index) => <Bar key={index} {...{ column, series, y, index, step }} />)
            : series.map((one) => <Line key={one.name} {...{ one, y, step }} />)}
          {at !== null && <rect class="marked" x={at * step} y={0} width={step} height={HEIGHT} />}
        </svg>
      </div>
      <p class="chart-times" aria-hidden="true">
        {at === null ? (
          <>
            <span>{ago(times[0])}</span>
            <span>now</span>
          </>
        ) : (
          <b>{text}</b>
        )}
      </p>
    </figure>
  );
}

/** As the series is drawn: a block, or a line. */
function Swatch({ kind, look }: Pick<Props, "kind"> & Pick<Series, "look">) {
  return (
    <svg class="swatch" viewBox={kind === "bars" ? "0 0 10 10" : "0 0 18 10"} aria-hidden="true">
      {kind === "bars" ? (
        <rect class={`bar ${look}`} width="10" height="10" rx="2" />
      ) : (
        <path class={`line ${look}`} d="M0 5h18" />
      )}
    </svg>
  );
}

interface BarProps {
  readonly column: readonly (number | null)[];
  readonly series: readonly Series[];
  readonly y: (value: number) => number;
  readonly index: number;
  readonly step: number;
}

function Bar({ column, series, y, index, step }: BarProps) {
  let below = 0;
  return series.map(({ name, look }, at) => {
    const value = column[at] ?? 0;
    if (value === 0) return null;
    const from = below;
    below += value;
    return (
      <rect
        key={name}
        class={`bar ${look}`}
        x={index * step + step * 0.1}
        y={y(below)}
        width={step * 0.8}
        height={y(from) - y(below)}
      />
    );
  });
}

/** A line is broken where nothing was measured; a value between two such places is a dot. */
function Line({ one, y, step }: { readonly one: Series } & Pick<BarProps, "y" | "step">) {
  let path = "";
  let dots = "";
  let isOpen = false;
  for (const [index, value] of one.values.entries()) {
    if (value === null) {
      isOpen = false;
      continue;
    }
    if (!isOpen && (one.values[index + 1] ?? null) === null) {
      dots += `M${((index + 0.5) * step).toFixed(1)} ${y(value).toFixed(1)}h.01`;
      continue;
    }
    const at = `${(index * step).toFixed(1)} ${y(value).toFixed(1)}`;
    path += `${isOpen ? "L" : "M"}${at}h${step.toFixed(1)}`;
    isOpen = true;
  }
  return (
    <>
      <path class={`line ${one.look}`} d={path} />
      <path class={`line dot ${one.look}`} d={dots} />
    </>
  );
}

const plain = (value: number): string => value.toLocaleString("en");

function titleOf(
  at: string,
  column: readonly (number | null)[],
  series: readonly Series[],
  show: (value: number) => string,
): string {
  const values = series.flatMap(({ name }, index) => {
    const value = column[index] ?? null;
    return value === null ? [] : [`${name} ${show(value)}`];
  });
  const time = new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", ...HOURS });
  return `${time}: ${values.join(", ") || "nothing"}`;
}

const ago = (at: string | undefined): string =>
  at === undefined ? "" : `${largestUnit(Date.now() - Date.parse(at))} ago`;
