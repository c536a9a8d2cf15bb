/** Opens a dialog over the page, which closes also when the reader goes back to another view. Returns what forgets that. */
export function openDialog(dialog: HTMLDialogElement | null): () => void {
  dialog?.showModal();
  const close = () => dialog?.close();
  addEventListener("popstate", close);
  return () => removeEventListener("popstate", close);
}
