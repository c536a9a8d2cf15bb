/** The broker's time, once a second while the page is visible. Ages and time left follow from it. */
import { effect, signal } from "@preact/signals";
import { session } from "../session/session.ts";

const brokerNow = (): number => Date.now() + (session.value?.clockOffsetMs ?? 0);
export const now = signal(brokerNow());

function tick(): void {
  if (!document.hidden) now.value = brokerNow();
}
setInterval(tick, 1000);
// A sign-in learns the broker's clock: from then on nothing is by the one before.
effect(() => {
  now.value = brokerNow();
});
document.addEventListener("visibilitychange", tick);
