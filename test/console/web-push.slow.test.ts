/**
 * Web Push in Chromium: turned on and off in the console, what the service worker shows, and what its buttons do; behind a
 * path. Chromium has no push service here: the test is it, and hands over by CDP what it gets. Needs a build.
 */
import { createServer, request } from "node:http";
import type { Page } from "playwright-core";
import { describe, expect, onTestFinished, test } from "vitest";
import { OPERATOR } from "../support/broker.ts";
import { openTab, SKIP, showView } from "../support/browser.ts";
import { startSubscribed } from "../support/subscribed.ts";
import { until } from "../support/until.ts";
import { browserKeys, startPushService } from "../support/web-push.ts";

const PREFIX = "/tools/errand";

/** A proxy that serves the broker below a path, and takes the answers of links itself. */
async function startProxy(target: string) {
  const answers: unknown[] = [];
  const server = createServer(async (incoming, outgoing) => {
    const { method, headers, url = "" } = incoming;
    if (url === `${PREFIX}/v1/links/answer`) {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming) chunks.push(chunk);
      answers.push(JSON.parse(Buffer.concat(chunks).toString()));
      const isFirst = answers.length === 1;
      outgoing.writeHead(isFirst ? 200 : 404, { "content-type": "application/json" });
      const refused = { detail: "The link answers nothing.", recovery: "Sign in." };
      outgoing.end(JSON.stringify(isFirst ? { delegation_id: "dlg_1" } : refused));
      return;
    }
    if (!url.startsWith(`${PREFIX}/`)) return void outgoing.writeHead(404).end();
    const passed = request(target + url.slice(PREFIX.length), { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers).flushHeaders();
      answer.pipe(outgoing);
    });
    passed.on("error", () => outgoing.destroy());
    outgoing.on("close", () => passed.destroy());
    incoming.pipe(passed);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  const origin = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  return { origin, base: `${origin}${PREFIX}/`, answers };
}

/** A page whose browser subscribes at the test's push service. */
async function start() {
  const broker = await startSubscribed({ publicUrl: `https://errand.example${PREFIX}` });
  const [service, proxy] = await Promise.all([startPushService(), startProxy(broker.url)]);
  const keys = browserKeys();
  const { page, context } = await openTab("about:blank", { expected: /status of 4/ });
  await context.addInitScript(
    (json) => {
      if (!("PushManager" in globalThis)) return;
      const isThere = () => localStorage.getItem("test-push") !== null;
      const subscription = {
        toJSON: () => json,
        unsubscribe: async () => {
          localStorage.removeItem("test-push");
          return true;
        },
      };
      Object.assign(PushManager.prototype, {
        getSubscription: async () => (isThere() ? subscription : null),
        subscribe: async ({ applicationServerKey }: PushSubscriptionOptionsInit) => {
          localStorage.setItem("test-push", String(applicationServerKey));
          return subscription;
        },
      });
    },
    { endpoint: service.url, keys: { p256dh: keys.p256dh, auth: keys.auth } },
  );
  const allow = () => context.grantPermissions(["notifications"], { origin: proxy.origin });
  const list = async () => (await broker.api.call("GET", "/v1/subscriptions")).body.subscriptions;
  const pushKey = () => page.evaluate(() => localStorage.getItem("test-push"));
  return { ...broker, ...proxy, page, context, service, keys, allow, list, pushKey };
}
type Started = Awaited<ReturnType<typeof start>>;

async function signIn(page: Page, base: string, token: string): Promise<void> {
  await page.goto(base);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator(".needs h1").waitFor();
  await showView(page, "#/agents?part=notifications");
}

async function turnOn({ page, allow }: Started): Promise<void> {
  await allow();
  await page.getByRole("button", { name: "Notify me in this browser" }).click();
  await page.getByText("This browser is notified.").waitFor();
}

/** The compiler has the types of pages only: what runs in the worker is text. */
async function inWorker({ context }: Started, expression: string): Promise<unknown> {
  const [worker] = context.serviceWorkers();
  if (!worker) throw new Error("no service worker");
  return worker.evaluate(expression);
}

/**
 * Hands pushes over to the page's service worker, and waits until it has shown them. Until then, nobody may ask what is
 * shown: Chromium forgets a notification if it is asked for the list while it displays that notification.
 */
async function pushTo(started: Started) {
  const { page, context, origin } = started;
  const cdp = await context.newCDPSession(page);
  const registered = new Promise<string>((resolve) => {
    cdp.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
      const [first] = registrations;
      if (first) resolve(first.registrationId);
    });
  });
  await cdp.send("ServiceWorker.enable");
  const registrationId = await registered;
  await inWorker(
    started,
    `{
      const show = registration.showNotification;
      globalThis.pushesShown = 0;
      registration.showNotification = async (...given) => {
        await show.apply(registration, given);
        globalThis.pushesShown++;
      };
    }`,
  );
  return async (data: string) => {
    const before = await inWorker(started, "pushesShown");
    await cdp.send("ServiceWorker.deliverPushMessage", { origin, registrationId, data });
    await until(async () => (await inWorker(started, "pushesShown")) !== before);
  };
}

/** What the browser shows now. */
const shown = (page: Page) =>
  page.evaluate(async () => {
    const registration = await navigator.serviceWorker.ready;
    const found = await registration.getNotifications();
    return found.map((one) => ({ title: one.title, body: one.body, tag: one.tag }));
  });

/** Presses the only notification, or its button; returns the address that the worker opened. */
async function press(started: Started, action: string): Promise<string[]> {
  // Only the browser's own events may open windows, and prolong the worker.
  const opened = await inWorker(
    started,
    `(async () => {
      const [notification] = await registration.getNotifications();
      const event = new NotificationEvent("notificationclick", { notification, action: ${JSON.stringify(action)} });
      const works = [], opened = [];
      event.waitUntil = (work) => works.push(work);
      clients.openWindow = async (url) => opened.push(url);
      dispatchEvent(event);
      await Promise.all(works);
      return opened;
    })()`,
  );
  return Array.isArray(opened) ? opened.map(String) : [];
}

describe.skipIf(SKIP)("in Chromium", () => {
  test("is turned on for this browser, shows what the broker sends, and is turned off in the same place", async () => {
    const started = await start();
    const { page, base, ann, service, keys, list, pushKey, tick, ask } = started;
    await signIn(page, base, ann.token);
    await turnOn(started);
    const [made] = await list();
    expect(made).toMatchObject({
      ...{ owner: "approver:ann", name: "Chrome on Linux" },
      events: ["question", "question_expiring", "question_expired"],
      deliver: [{ kind: "web_push", to: new URL(service.url).origin }],
    });
    expect(await pushKey()).toBe((await ann.call("GET", "/v1/web-push-key")).body.key);
    await page.getByRole("button", { name: "Test Chrome on Linux" }).click();
    await page.getByText("Test delivered.").waitFor();
    await tick();
    const { id, interrupt_id } = await ask();
    await until(async () => {
      await tick();
      return service.received.length === 2;
    });
    const push = await pushTo(started);
    for (const { body } of service.received) await push(keys.decrypt(body));
    expect((await shown(page)).map(({ title }) => title).sort()).toEqual([
      "Errand can reach you here",
      "scout asks",
    ]);
    expect((await shown(page)).map(({ tag }) => tag)).toContain(interrupt_id);
    const [asked] = service.received.slice(1);
    expect(JSON.parse(keys.decrypt(asked?.body ?? Buffer.of()))).toMatchObject({ delegation_id: id });

    await page.getByRole("button", { name: "Turn off" }).click();
    await page.getByRole("button", { name: "Notify me in this browser" }).waitFor();
    await expect.poll(async () => [await list(), await pushKey()]).toEqual([[], null]);
  });

  test("a press opens the question in the console that is open, or its link; buttons answer and say how it went", async () => {
    const started = await start();
    const { page, base, ann, answers } = started;
    await signIn(page, base, ann.token);
    await turnOn(started);
    const push = await pushTo(started);
    const question = {
      ...{ id: "ntf_1", type: "question", title: "scout asks", text: "Deploy?", delegation_id: "dlg_0_a" },
      ...{ interrupt_id: "int_1", link: "https://errand.example/answer#lnk_1" },
      buttons: [
        { decision: "approve", token: "lnk_yes" },
        { decision: "deny", token: "lnk_no" },
      ],
    };
    const show = async (message: object | string, title: string) => {
      await push(typeof message === "string" ? message : JSON.stringify(message));
      expect((await shown(page)).map((one) => one.title)).toEqual([title]);
    };
    await show(question, "scout asks");
    expect(await shown(page)).toEqual([{ title: "scout asks", body: "Deploy?", tag: "int_1" }]);
    expect(await press(started, "")).toEqual([]);
    await page.waitForFunction(`location.hash === "#/live?open=dlg_0_a"`);
    await expect.poll(() => shown(page)).toEqual([]);

    await show(question, "scout asks");
    await press(started, "approve");
    expect((await shown(page)).map((one) => one.body)).toEqual(["Approved."]);
    expect(answers).toEqual([{ token: "lnk_yes", decision: "approve" }]);
    await show({ ...question, type: "question_expiring", title: "scout still waits" }, "scout still waits");
    await press(started, "deny");
    expect((await shown(page)).map((one) => one.body)).toEqual(["The link answers nothing. Sign in."]);
    expect(answers[1]).toEqual({ token: "lnk_no", decision: "deny" });
    await press(started, "");

    // A page beside the console, such as that of an answer link, is not the console.
    await page.goto(`${base}docs`);
    await show({ ...question, interrupt_id: "int_2" }, "scout asks");
    expect(await press(started, "")).toEqual([question.link]);
    await show({ type: "no_worker", title: "Nobody polls", agent: "scout" }, "Nobody polls");
    expect(await press(started, "")).toEqual([`${base}#/agents?name=scout`]);
    await show("not JSON", "Errand has news");
  });

  test("signing out, and somebody else who signs in, end the notifications of this browser", async () => {
    const started = await start();
    const { page, base, ann, alice, list, pushKey } = started;
    await signIn(page, base, ann.token);
    await turnOn(started);
    await page.locator(".account summary").click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").waitFor();
    await until(async () => (await list()).length === 0 && (await pushKey()) === null);

    await signIn(page, base, ann.token);
    await turnOn(started);
    // The session ended without the browser.
    await page.evaluate(() => localStorage.removeItem("errand-session"));
    await page.reload();
    await signIn(page, base, alice.token);
    await until(async () => (await pushKey()) === null);
    await page.getByRole("button", { name: "Notify me in this browser" }).waitFor();
    expect(await page.getByText("This browser is notified.").count()).toBe(0);
  });

  test("a refused permission says what to do, and nothing is subscribed", async () => {
    const { page, context, base, origin, list, pushKey } = await start();
    // Grants nothing, and refuses the rest.
    await context.grantPermissions([], { origin });
    await signIn(page, base, OPERATOR);
    await page.getByText("Allow them by the sign beside the address").waitFor();
    expect(await page.getByRole("button", { name: "Notify me in this browser" }).count()).toBe(0);
    await page.getByLabel("Notify me by").selectOption("Mail");
    await page.getByRole("button", { name: "Add" }).waitFor();
    expect([await list(), await pushKey()]).toEqual([[], null]);
  });
});
