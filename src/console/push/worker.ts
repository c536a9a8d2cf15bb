/**
 * The service worker at `/sw.js`: shows the notifications that a push service brings, also while the console is closed, and
 * sends what their buttons decide. Limit: it keeps nothing and serves no file, so the page always comes from the broker.
 */

interface Extendable {
  waitUntil(work: Promise<unknown>): void;
}
interface Push extends Extendable {
  readonly data: { text(): string } | null;
}
interface Click extends Extendable {
  readonly notification: Notification;
  /** The button; empty: the notification itself. */
  readonly action: string;
}
interface Tab {
  readonly url: string;
  focus(): Promise<unknown>;
  navigate(url: string): Promise<unknown>;
}
/** The part of a service worker that is used here; the compiler has the types of pages only. */
interface Worker {
  readonly registration: ServiceWorkerRegistration;
  readonly clients: {
    claim(): Promise<void>;
    matchAll(options: object): Promise<readonly Tab[]>;
    openWindow(url: string): Promise<unknown>;
  };
  skipWaiting(): Promise<void>;
  addEventListener(type: "install" | "activate", listener: (event: Extendable) => void): void;
  addEventListener(type: "push", listener: (event: Push) => void): void;
  addEventListener(type: "notificationclick", listener: (event: Click) => void): void;
}
declare const self: Worker;

/** A new version takes the place of the old one at once: no page depends on it. */
self.addEventListener("install", (event) => event.waitUntil(self.skipWaiting()));
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("push", (event) => event.waitUntil(show(event.data?.text() ?? "")));
self.addEventListener("notificationclick", (event) => {
  const { notification, action } = event;
  // What became of a decision takes its place; closing it could close that instead.
  if (action === "") notification.close();
  event.waitUntil(action === "" ? open(notification) : answer(notification, action));
});

const LABELS: Readonly<Record<string, string>> = { approve: "Approve", deny: "Deny" };
const DONE: Readonly<Record<string, string>> = { approve: "Approved.", deny: "Denied." };

const member = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;

function textOf(value: unknown, name: string): string {
  const found = member(value, name);
  return typeof found === "string" ? found : "";
}

/** Where the console is, also behind a path. */
const base = (): string => self.registration.scope;

/** A browser takes a permission back whose pushes show nothing: so what cannot be read is shown, too. */
async function show(text: string): Promise<void> {
  const message = parse(text);
  const given = member(message, "buttons");
  const buttons = Array.isArray(given) ? given.filter((one) => textOf(one, "decision") in LABELS) : [];
  const options = {
    body: textOf(message, "text"),
    // What is about to expire takes the place of the question.
    tag: textOf(message, "interrupt_id") || textOf(message, "id") || "errand",
    renotify: textOf(message, "type") !== "question",
    actions: buttons.map((one) => ({
      action: textOf(one, "decision"),
      title: LABELS[textOf(one, "decision")],
    })),
    data: { place: placeOf(message), link: textOf(message, "link"), buttons },
  };
  await self.registration.showNotification(textOf(message, "title") || "Errand has news", options);
}

function placeOf(message: unknown): string {
  const [delegation, agent] = [textOf(message, "delegation_id"), textOf(message, "agent")];
  if (delegation !== "") return `#/live?open=${encodeURIComponent(delegation)}`;
  return agent === "" ? "#/needs" : `#/agents?name=${encodeURIComponent(agent)}`;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** In a console that is open, otherwise by the link: an answer link needs no sign-in. */
async function open({ data }: Notification): Promise<void> {
  const place = base() + textOf(data, "place");
  const tabs = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const tab = tabs.find(({ url }) => url.split(/[?#]/, 1)[0] === base());
  if (!tab) return void (await self.clients.openWindow(textOf(data, "link") || place));
  // Some browsers refuse one of the two.
  await tab.focus().catch(() => undefined);
  await tab.navigate(place).catch(() => self.clients.openWindow(place));
}

/** Sends a decision, and says what became of it in the place of the question. */
async function answer({ title, tag, data }: Notification, decision: string): Promise<void> {
  const buttons = member(data, "buttons");
  const button = Array.isArray(buttons)
    ? buttons.find((one) => textOf(one, "decision") === decision)
    : undefined;
  const body = await send(textOf(button, "token"), decision);
  const place = textOf(data, "place");
  await self.registration.showNotification(title, { body, tag, data: { place, link: "", buttons: [] } });
}

async function send(token: string, decision: string): Promise<string> {
  try {
    const response = await fetch(`${base()}v1/links/answer`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token, decision }),
    });
    if (response.ok) return DONE[decision] ?? "Sent.";
    const problem: unknown = await response.json();
    return `${textOf(problem, "detail")} ${textOf(problem, "recovery")}`.trim() || "The broker refused it.";
  } catch {
    return "The broker does not answer. Try again in the console.";
  }
}
