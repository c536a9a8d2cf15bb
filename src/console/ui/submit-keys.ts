/** For a field of several lines, in which Enter is a new line: Ctrl+Enter, or ⌘+Enter, sends its form. */
export function sendByCtrlEnter(event: KeyboardEvent): void {
  const { key, ctrlKey, metaKey, repeat, isComposing, target } = event;
  if (key !== "Enter" || !(ctrlKey || metaKey) || repeat || isComposing) return;
  const form = target instanceof Element ? target.closest("form") : null;
  const button = form?.querySelector<HTMLButtonElement>("[type=submit]:enabled");
  if (!form || !button) return;
  event.preventDefault();
  form.requestSubmit(button);
}
