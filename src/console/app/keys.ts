/** Keyboard shortcuts. The newest registration of a key wins; keys typed into a field are left alone. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

export const helpIsOpen = signal(false);

type Action = (event: KeyboardEvent) => void;
const actions = new Map<string, Action[]>();

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || target.matches("input:not([type=radio], [type=checkbox]), textarea, select"));

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyping(event.target) && event.key !== "Escape") return;
  const action = actions.get(event.key)?.at(-1);
  if (!action) return;
  event.preventDefault();
  action(event);
});

/** Calls the action when the key is pressed, while the component is shown. */
export function useKey(key: string, action: Action | undefined): void {
  useEffect(() => {
    if (!action) return;
    actions.set(key, [...(actions.get(key) ?? []), action]);
    return () => {
      actions.set(
        key,
        (actions.get(key) ?? []).filter((one) => one !== action),
      );
    };
  });
}

/** Moves the focus to the next (1) or previous (-1) row: an element with `data-row`. */
export function moveFocus(step: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>("[data-row]")].filter(
    (row) => row.offsetParent !== null,
  );
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  rows[at === -1 ? 0 : Math.min(Math.max(at + step, 0), rows.length - 1)]?.focus();
}
