import { useSignal } from "@preact/signals";

/** The first of many items, and a button that shows more of them; null if all are shown. */
export function useFirst<T>(items: readonly T[], step: number) {
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
      {left.toLocaleString("en")} more
    </button>
  );
  return { shown, more };
}
