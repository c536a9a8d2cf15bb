import { useSignal } from "@preact/signals";
import { count } from "./words.ts";

/** The first of many items, and a button that shows more of them; null if all are shown. `of`: what an item is. */
export function useFirst<T>(items: readonly T[], step: number, of: string) {
  const most = useSignal(step);
  const shown = items.slice(0, most.value);
  const left = items.length - shown.length;
  const more = left > 0 && (
    <button
      type="button"
      class="quiet more"
      onClick={() => {
        most.value += step;
      }}
    >
      {count(left, `more ${of}`)}
    </button>
  );
  return { shown, more };
}
