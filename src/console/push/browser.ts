/** Turns Web Push on and off in this browser. */
import { Subscriptions } from "../../client/subscriptions.ts";
import type { SubscriptionInput } from "../../schema/subscription.ts";
import { admitScript } from "../app/script-address.ts";
import { session } from "../session/session.ts";
import { orGone } from "../ui/or-gone.ts";
import { forget, pageUrl, pushed, store } from "./stored.ts";

export const clientOf = () => new Subscriptions(session.value?.connection.options);

const DENIED =
  "This browser blocks notifications of this page. Allow them by the sign beside the address, then reload the page.";

/** Why this browser cannot be notified; null: it can. */
export function whyNot(): string | null {
  if (!isSecureContext)
    return "Browsers allow this only over HTTPS, or on the broker's own machine: open the console by such an address.";
  if (!("serviceWorker" in navigator && "PushManager" in globalThis && "Notification" in globalThis))
    return "This browser has no Web Push. On an iPhone or iPad, add the page to the home screen and open it from there.";
  return Notification.permission === "denied" ? DENIED : null;
}

/** Asks for the permission, and creates the subscription. */
export async function turnOn({ deliver: _, ...settings }: SubscriptionInput, after: number): Promise<void> {
  const principal = session.value?.principal ?? "";
  const permission = await Notification.requestPermission();
  if (permission !== "granted")
    throw new Error(permission === "denied" ? DENIED : "It was not allowed. Try again, and choose Allow.");
  await turnOff();
  const client = clientOf();
  const { url, keys } = await subscribe(await client.webPushKey());
  try {
    const channel = { kind: "web_push", url, keys, after_seconds: after } as const;
    const { id } = await client.create({ name: browserName(), ...settings, deliver: [channel] });
    store({ id, principal });
  } catch (error) {
    await forget();
    throw error;
  }
}

async function subscribe(applicationServerKey: string) {
  await navigator.serviceWorker.register(admitScript(new URL("sw.js", pageUrl()).href));
  const { pushManager } = await navigator.serviceWorker.ready;
  const found = await pushManager
    .subscribe({ userVisibleOnly: true, applicationServerKey })
    .catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(`This browser cannot reach its push service, or it refused: ${reason}.`);
    });
  const { endpoint: url = "", keys } = found.toJSON();
  return { url, keys: { p256dh: keys?.p256dh ?? "", auth: keys?.auth ?? "" } };
}

/** Deletes the subscription, too, if it is of the principal that is signed in. */
export async function turnOff(): Promise<void> {
  const stored = pushed.peek();
  try {
    if (stored && stored.principal === session.peek()?.principal) await orGone(clientOf().delete(stored.id));
  } finally {
    await forget();
  }
}

/** For the list: the browser and its system, for example `Firefox on Linux`. */
function browserName(): string {
  const { userAgent } = navigator;
  const find = (names: readonly string[]) => names.find((name) => userAgent.includes(name));
  const browser = find(["Firefox", "Edg", "Chrome", "Safari"]) ?? "Browser";
  const system = find(["Android", "iPhone", "iPad", "Windows", "Mac", "Linux"]);
  const name = browser === "Edg" ? "Edge" : browser;
  return system === undefined ? name : `${name} on ${system}`;
}
