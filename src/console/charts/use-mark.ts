/** The column of a chart whose values are shown: that under the pointer, or the one that the arrow keys chose. */
import { useSignal } from "@preact/signals";

/** `at` is null while none is marked. The rest are the handlers of the element that is as wide as all columns. */
export function useMark(columns: number) {
  const at = useSignal<number | null>(null);
  const last = columns - 1;
  const mark = (index: number) => {
    at.value = Math.min(Math.max(index, 0), last);
  };
  const point = ({ currentTarget, clientX }: PointerEvent) => {
    if (!(currentTarget instanceof Element)) return;
    const { left, width } = currentTarget.getBoundingClientRect();
    mark(Math.floor(((clientX - left) / width) * columns));
  };
  const unmark = () => {
    at.value = null;
  };
  const press = (event: KeyboardEvent) => {
    const now = at.value ?? last;
    const next = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    mark(next);
  };
  return {
    at: at.value,
    onPointerMove: point,
    onPointerDown: point,
    onPointerLeave: unmark,
    onFocus: () => mark(last),
    onBlur: unmark,
    onKeyDown: press,
  };
}
