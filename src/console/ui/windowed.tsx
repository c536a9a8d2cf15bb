import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** A list with at most this many rows is drawn whole. */
export const PLAIN = 200;
/** Rows drawn above and below those in view. */
const MARGIN = 20;

interface Props<T> {
  readonly items: readonly T[];
  /** The height of every row, in pixels. */
  readonly rowHeight: number;
  readonly keyOf: (item: T) => string;
  readonly children: (item: T) => ComponentChildren;
}

/** A list that draws only the rows in view when there are many. The page scrolls, or the column that it is in. */
export function Windowed<T>({ items, rowHeight, keyOf, children }: Props<T>) {
  const list = useRef<HTMLUListElement>(null);
  const range = useSignal<readonly [number, number]>([0, PLAIN]);
  const isLong = items.length > PLAIN;
  useEffect(() => {
    if (!isLong) return;
    const measure = () => {
      const top = list.current?.getBoundingClientRect().top ?? 0;
      const first = Math.max(0, Math.floor(-top / rowHeight) - MARGIN);
      const last = Math.ceil((innerHeight - top) / rowHeight) + MARGIN;
      if (first !== range.value[0] || last !== range.value[1]) range.value = [first, last];
    };
    measure();
    addEventListener("scroll", measure, { capture: true, passive: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure, { capture: true });
      removeEventListener("resize", measure);
    };
  }, [isLong, rowHeight]);
  const [first, last] = isLong ? range.value : [0, items.length];
  const shown = items.slice(first, last);
  const above = first * rowHeight;
  const below = Math.max(0, items.length - first - shown.length) * rowHeight;
  return (
    <ul class="rows" ref={list} style={{ paddingTop: `${above}px`, paddingBottom: `${below}px` }}>
      {shown.map((item) => (
        <li key={keyOf(item)} aria-setsize={items.length}>
          {children(item)}
        </li>
      ))}
    </ul>
  );
}
