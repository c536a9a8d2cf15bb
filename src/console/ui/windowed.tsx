import { useSignal } from "@preact/signals";
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** A list with at most this many rows is drawn whole. */
const PLAIN = 200;
/** Rows drawn above and below those in view. */
const MARGIN = 20;

/** Which rows of a list to draw, and how many pixels the others take above and below. The rows are its children. */
export function useWindow(list: RefObject<HTMLElement | null>, count: number) {
  const drawn = useSignal({ first: 0, last: PLAIN, rowHeight: 0 });
  const isLong = count > PLAIN;
  useEffect(() => {
    if (!isLong || !list.current) return;
    const { current } = list;
    const measure = () => {
      const { top } = current.getBoundingClientRect();
      const rowHeight = heightOf(current) || drawn.value.rowHeight;
      if (rowHeight === 0) return;
      const first = Math.max(0, Math.floor(-top / rowHeight) - MARGIN);
      const last = Math.ceil((innerHeight - top) / rowHeight) + MARGIN;
      const { value } = drawn;
      if (first !== value.first || last !== value.last || rowHeight !== value.rowHeight)
        drawn.value = { first, last, rowHeight };
    };
    measure();
    addEventListener("scroll", measure, { capture: true, passive: true });
    addEventListener("resize", measure);
    // Another column may take some of the width, and the rows then wrap.
    const observer = new ResizeObserver(measure);
    observer.observe(current);
    return () => {
      removeEventListener("scroll", measure, { capture: true });
      removeEventListener("resize", measure);
      observer.disconnect();
    };
  }, [isLong, count]);
  const { rowHeight } = drawn.value;
  // A list that became shorter may end before the first row that was drawn.
  const first = isLong ? Math.min(drawn.value.first, count - 1) : 0;
  const last = isLong ? Math.min(drawn.value.last, count) : count;
  return {
    isLong,
    first,
    last,
    above: first * rowHeight,
    below: (count - Math.max(first, last)) * rowHeight,
  };
}

interface Props<T> {
  readonly items: readonly T[];
  readonly keyOf: (item: T) => string;
  readonly children: (item: T, index: number) => ComponentChildren;
  /** A further class of the list. */
  readonly kind?: string;
}

/**
 * A list that draws only the rows in view when there are many; the page scrolls, or the column that it is in. A long list
 * has the class `long`: the styles must give all its rows the same height.
 */
export function Windowed<T>({ items, keyOf, children, kind = "" }: Props<T>) {
  const list = useRef<HTMLUListElement>(null);
  const { isLong, first, last, above, below } = useWindow(list, items.length);
  const shown = isLong ? items.slice(first, last) : items;
  return (
    <ul
      class={`rows ${kind} ${isLong ? "long" : ""}`}
      ref={list}
      style={{ paddingTop: `${above}px`, paddingBottom: `${below}px` }}
    >
      {shown.map((item, index) => (
        <li key={keyOf(item)} aria-setsize={items.length} aria-posinset={first + index + 1}>
          {children(item, first + index)}
        </li>
      ))}
    </ul>
  );
}

/** The distance from one row to the next; 0 if fewer than two are drawn. Fractions of pixels differ with the scrolling. */
function heightOf({ children: [one, two] }: Element): number {
  if (!one || !two) return 0;
  return Math.round((two.getBoundingClientRect().top - one.getBoundingClientRect().top) * 100) / 100;
}
