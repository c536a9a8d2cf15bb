/** Ctrl+Enter, or ⌘+Enter; held down, it acts once. */
export const isCtrlEnter = ({ key, ctrlKey, metaKey, repeat, isComposing }: KeyboardEvent): boolean =>
  key === "Enter" && (ctrlKey || metaKey) && !repeat && !isComposing;

/** For a field of several lines, in which Enter is a new line: Ctrl+Enter sends its form. */
export function sendByCtrlEnter(event: KeyboardEvent): void {
  if (!isCtrlEnter(event)) return;
  const { target } = event;
  const form = target instanceof Element ? target.closest("form") : null;
  const button = form?.querySelector<HTMLButtonElement>("[type=submit]:enabled");
  if (!button) return;
  event.preventDefault();
  // As if it had been pressed: what takes an answer back stands in the place of its button.
  button.click();
}
