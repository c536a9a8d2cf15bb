/**
 * What is typed for a field whose part of the page is still loading reaches nothing else: it decides nothing, and presses
 * no button. Esc gives the field up.
 */
import { helpIsOpen, isTyping, paletteIsOpen } from "./keys.ts";
import { route } from "./route.ts";

/** Whether `/` was pressed, and nobody has turned to something else since. */
let isSought = false;

export function holdTypedAhead(): () => void {
  const stop = new AbortController();
  const options = { capture: true, signal: stop.signal };
  addEventListener("keydown", hold, options);
  addEventListener("pointerdown", () => (isSought = false), options);
  return () => stop.abort();
}

const isFindLoading = (): boolean => route.value.view === "find" && !document.querySelector("[name=q]");

function hold(event: KeyboardEvent): void {
  const { key, target, ctrlKey, metaKey, altKey } = event;
  if (event.isComposing || document.querySelector("dialog[open]")) return;
  if (isTyping(target) || key === "Tab") isSought = false;
  if ((isSought && isFindLoading()) || paletteIsOpen.value || helpIsOpen.value) {
    if (key === "Escape") isSought = paletteIsOpen.value = helpIsOpen.value = false;
    else if (key !== "Enter" && (key.length > 1 || ctrlKey || metaKey || altKey)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  } else if (key === "/" && !isTyping(target)) isSought = true;
}
