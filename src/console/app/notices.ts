/** Whether the reader wants a notification when a question arrives while the page is hidden. */
import { effect, signal } from "@preact/signals";

const KEY = "errand-notices";
export const mayNotify = "Notification" in globalThis;
export const wantsNotices = signal(
  localStorage.getItem(KEY) === "yes" && mayNotify && Notification.permission === "granted",
);

effect(() => localStorage.setItem(KEY, wantsNotices.value ? "yes" : "no"));
