/** Saves the content as a file. A browser neither opens nor runs it. */
export function download(content: BlobPart, name: string, type: string): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser reads it when the click is over.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
