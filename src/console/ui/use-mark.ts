/** One of many items in a drawing whose text is shown: that under the pointer, or the one that the keys chose. */
import { useSignal } from "@preact/signals";

/** How far PageUp and PageDown go. */
const PAGE = 10;

/**
 * `at` is null while no item is marked. The rest are the handlers of the element that holds all items, a slider. The last
 * of `count` items is marked first. `itemAt` finds the item under the pointer.
 */
export function useMark(count: number, itemAt: (event: PointerEvent, box: DOMRect) => number) {
  const at = useSignal<number | null>(null);
  const last = count - 1;
  const mark = (index: number) => {
    at.value = Math.min(Math.max(index, 0), last);
  };
  const point = (event: PointerEvent) => {
    const { currentTarget } = event;
    if (currentTarget instanceof Element) mark(itemAt(event, currentTarget.getBoundingClientRect()));
  };
  const unmark = () => {
    at.value = null;
  };
  const press = (event: KeyboardEvent) => {
    const now = at.value ?? last;
    const next = {
      ...{ ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last },
      ...{ PageUp: now - PAGE, PageDown: now + PAGE },
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    mark(next);
  };
  return {
    at: at.value === null ? null : Math.min(at.value, last),
    onPointerMove: point,
    onPointerDown: point,
    onPointerLeave: unmark,
    onFocus: () => mark(last),
    onBlur: unmark,
    onKeyDown: press,
  };
}
