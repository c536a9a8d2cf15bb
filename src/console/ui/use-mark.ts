/** Marks one of many items in a drawing, so that its text can be shown: by pointer, by touch or by keyboard. */
import { useSignal } from "@preact/signals";

/** Items that Page Up and Page Down pass over. */
const PAGE = 10;

/**
 * Returns the index of the marked item, `at` (null: none), and the handlers for the element that holds all items, a
 * slider. `itemAt` returns the index of the item under the pointer. The keyboard starts at the last of the `count` items.
 */
export function useMark(count: number, itemAt: (event: PointerEvent, box: DOMRect) => number) {
  const at = useSignal<number | null>(null);
  const last = count - 1;
  const mark = (index: number) => {
    at.value = Math.min(Math.max(index, 0), last);
  };
  const unmark = () => {
    at.value = null;
  };
  const markUnderPointer = (event: PointerEvent) => {
    const { currentTarget } = event;
    if (currentTarget instanceof Element) mark(itemAt(event, currentTarget.getBoundingClientRect()));
  };
  const markByKey = (event: KeyboardEvent) => {
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
    onPointerMove: markUnderPointer,
    onPointerDown: markUnderPointer,
    onPointerLeave: ({ pointerType }: PointerEvent) => {
      // A finger leaves at the end of every tap.
      if (pointerType !== "touch") unmark();
    },
    // The finger scrolls the page instead.
    onPointerCancel: unmark,
    onFocus: ({ currentTarget }: FocusEvent) => {
      // A click or a tap gives the focus, too, and has already marked an item.
      if (currentTarget instanceof Element && currentTarget.matches(":focus-visible")) mark(last);
    },
    onBlur: unmark,
    onKeyDown: markByKey,
  };
}
