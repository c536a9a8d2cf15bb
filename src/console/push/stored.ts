/**
 * By which subscription this browser is notified, if it is. Limit: one principal of a browser; whoever signs in after it
 * ends what it had.
 */
import { effect, signal } from "@preact/signals";
import * as z from "zod";
import { session } from "../session/session.ts";

const KEY = "errand-push";
const storedSchema = z.object({ id: z.string(), principal: z.string() });
type Stored = z.infer<typeof storedSchema>;

/** The subscription of this browser; null: it has none. */
export const pushed = signal(read());

function read(): Stored | null {
  try {
    return storedSchema.parse(JSON.parse(localStorage.getItem(KEY) ?? ""));
  } catch {
    return null;
  }
}

export function store(next: Stored): void {
  localStorage.setItem(KEY, JSON.stringify(next));
  pushed.value = next;
}

// Another tab turned it on or off.
addEventListener("storage", ({ key }) => {
  if (key === KEY) pushed.value = read();
});

/** The folder of the page, for which the service worker is. */
export const pageUrl = (): URL => new URL(".", location.href);

/** Ends it in the browser. The broker learns of it from the push service, if not before. */
export async function forget(): Promise<void> {
  localStorage.removeItem(KEY);
  pushed.value = null;
  if (!("serviceWorker" in navigator)) return;
  const registration = await navigator.serviceWorker.getRegistration(pageUrl());
  const found = await registration?.pushManager?.getSubscription();
  await found?.unsubscribe();
}

/** Somebody else signed in: what this browser shows is no longer for them. */
export const watchPushes = (): (() => void) =>
  effect(() => {
    const principal = session.value?.principal;
    if (principal !== undefined && pushed.value && pushed.value.principal !== principal) void forget();
  });
