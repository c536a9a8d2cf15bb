/** Keyboard shortcuts. The newest registration of a key wins; keys typed into a field are left alone. */
import { signal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";

export const helpIsOpen = signal(false);
export const paletteIsOpen = signal(false);

const isMac = /^(?:Mac|iP)/.test(navigator.platform);

/** The name of the key that opens the palette. */
export const PALETTE_KEY = isMac ? "⌘K" : "Ctrl+K";

/** Ctrl+K, or ⌘K. On a Mac, Ctrl+K deletes to the end of the line in a field. */
function isPaletteKey({ key, ctrlKey, metaKey, altKey, shiftKey, repeat, target }: KeyboardEvent): boolean {
  if (key.toLowerCase() !== "k" || ctrlKey === metaKey || altKey || shiftKey || repeat) return false;
  return metaKey ? isMac : !isMac || !isTyping(target);
}

/** Opens the palette, and closes it; not over another dialog. */
addEventListener("keydown", (event) => {
  if (event.isComposing || event.defaultPrevented || !isPaletteKey(event)) return;
  if (!hasShell.value) return;
  event.preventDefault();
  const dialog = document.querySelector<HTMLDialogElement>("dialog[open]");
  if (dialog === null) paletteIsOpen.value = true;
  else if (dialog.matches(".palette")) dialog.close();
});

/** Whether somebody is signed in, so that there is something to go to. */
export const hasShell = signal(false);

type Action = (event: KeyboardEvent) => void;
const actions = new Map<string, Action[]>();

export const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || target.matches("input:not([type=radio], [type=checkbox]), textarea, select"));

/** Whether the reader used the keyboard last: then the focus follows what opens and closes. */
let usesKeyboard = false;
for (const type of ["keydown", "pointerdown"])
  addEventListener(
    type,
    () => {
      usesKeyboard = type === "keydown";
    },
    { capture: true },
  );

/** Focuses the element for a reader who uses the keyboard. */
export function focusByKeyboard(element: Element | null | undefined): void {
  if (usesKeyboard && element instanceof HTMLElement) element.focus();
}

addEventListener("keydown", (event) => {
  const { key, target } = event;
  // An input method has its own Escape.
  if (event.isComposing) return;
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  // A dialog closes by Escape itself, and what is behind it cannot be used.
  if (document.querySelector("dialog[open]")) return;
  if (isTyping(target) && key !== "Escape") return;
  const action = actions.get(key)?.at(-1);
  if (!action) return;
  event.preventDefault();
  action(event);
});

/** Calls the action when the key is pressed, until the returned function is called. */
export function onKey(key: string, action: Action): () => void {
  actions.set(key, [...(actions.get(key) ?? []), action]);
  return () => {
    actions.set(
      key,
      (actions.get(key) ?? []).filter((one) => one !== action),
    );
  };
}

/** Calls the action when the key is pressed, while the component is shown. */
export function useKey(key: string, action: Action | undefined): void {
  useLayoutEffect(() => action && onKey(key, action));
}

/**
 * Moves the focus to the next (1) or previous (-1) row: an element with `data-row`. From elsewhere, it goes on at the row
 * of the open delegation.
 */
export function moveFocus(step: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>("[data-row]")].filter(
    (row) => row.offsetParent !== null,
  );
  const focused = rows.findIndex((row) => row.contains(document.activeElement));
  const at = focused === -1 ? rows.findIndex((row) => row.matches("[aria-current=true]")) : focused;
  rows[at === -1 ? 0 : Math.min(Math.max(at + step, 0), rows.length - 1)]?.focus();
}
