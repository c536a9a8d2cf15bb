/** Whether Markdown is formatted, in all texts; this browser keeps it. */
import { signal } from "@preact/signals";

const KEY = "errand-markdown";

export const isFormatting = signal(localStorage.getItem(KEY) !== "no");

export function setFormatting(isOn: boolean): void {
  isFormatting.value = isOn;
  localStorage.setItem(KEY, isOn ? "yes" : "no");
}
