/** Several pages of the console at once, and hidden ones. Needs a build. */
import type { Page, Request } from "playwright-core";
import { describe, expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, pass, SKIP, showView, tick } from "../support/browser.ts";
import { until } from "../support/until.ts";

async function signIn(page: Page): Promise<void> {
  await page.getByLabel("Token").fill(OPERATOR);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Live" }).waitFor();
}

/** Tells the page that it is hidden: a browser without a screen never hides one. */
const setHidden = (page: Page, hidden: boolean) =>
  page.evaluate((value) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => value });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);

const rowOf = (page: Page, text: string) => page.locator(".row", { hasText: text });

describe.skipIf(SKIP)("in Chromium", () => {
  test("seven pages share one stream, also when the page that reads it closes", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const first = await openTab(url);
    await signIn(first.page);
    // The first page streams; a browser has six connections for all of them.
    await first.page.locator(".agent-row").waitFor();
    const others = await Promise.all(Array.from({ length: 6 }, () => first.context.newPage()));
    for (const page of others) {
      await page.goto(url);
      await page.locator(".agent-row").waitFor();
    }
    const { id } = (await api.delegate("scout", { task: "The first" })).body;
    for (const page of [first.page, ...others]) await rowOf(page, "The first").waitFor();
    await first.page.close();
    await api.delegate("scout", { task: "The second" });
    for (const page of others) await rowOf(page, "The second").waitFor();
    // The last page can still act.
    const [last] = others.slice(-1);
    await last?.goto(`${url}/#/live?open=${id}`);
    await last?.getByRole("button", { name: "Cancel" }).click();
    await last?.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    for (const page of others) await rowOf(page, "The first").locator("text=canceled").waitFor();
  });

  test("a page takes over from one that is frozen, which then goes on", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const { page, context } = await openTab(url);
    await signIn(page);
    await page.locator(".agent-row").waitFor();
    const second = await context.newPage();
    await second.goto(url);
    await second.locator(".agent-row").waitFor();
    await api.delegate("scout", { task: "The first" });
    for (const one of [page, second]) await rowOf(one, "The first").waitFor();
    // As a browser freezes it: nothing of it runs.
    const devtools = await context.newCDPSession(page);
    await devtools.send("Debugger.enable");
    await devtools.send("Debugger.pause");
    const { id } = (await api.delegate("scout", { task: "The second" })).body;
    await setHidden(second, false);
    await rowOf(second, "The second").waitFor();
    await api.cancel(id);
    await rowOf(second, "The second").locator("text=canceled").waitFor();
    await devtools.send("Debugger.disable");
    await rowOf(page, "The second").locator("text=canceled").waitFor();
    await api.delegate("scout", { task: "The third" });
    for (const one of [page, second]) await rowOf(one, "The third").waitFor();
  });

  test.each([
    { name: "with a shared stream", hasLocks: true },
    // As a browser does on plain HTTP.
    { name: "with a stream that was given back", hasLocks: false },
  ])("a hidden page that returns shows what happened, $name", async ({ hasLocks }) => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const { page, context } = await openTab("about:blank", { movesClock: true });
    if (!hasLocks)
      await context.addInitScript(
        "Object.defineProperty(Navigator.prototype, 'locks', { value: undefined })",
      );
    const streams = { opened: 0, closed: 0 };
    const isStream = (request: Request) =>
      new URL(request.url()).pathname === "/v1/events" &&
      request.headers().accept?.includes("event-stream") === true;
    page.on("request", (request) => {
      if (isStream(request)) streams.opened += 1;
    });
    page.on("requestfailed", (request) => {
      if (isStream(request)) streams.closed += 1;
    });
    await page.goto(url);
    await signIn(page);
    await until(() => streams.opened === 1);
    const { id } = (await api.delegate("scout", { task: "Hidden" })).body;
    await rowOf(page, "Hidden").waitFor();
    await setHidden(page, true);
    await pass(page, 31);
    if (!hasLocks) await until(() => streams.closed === 1);
    await api.cancel(id);
    await api.delegate("scout", { task: "Meanwhile" });
    await setHidden(page, false);
    await rowOf(page, "Meanwhile").waitFor();
    await rowOf(page, "Hidden").locator("text=canceled").waitFor();
    expect(streams).toEqual(hasLocks ? { opened: 1, closed: 0 } : { opened: 2, closed: 1 });
  });

  test("the counts of an agent follow an event at once", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const { page } = await openTab(url, { movesClock: true });
    await signIn(page);
    await page.locator(".agent-row").waitFor();
    await page.clock.pauseAt(Date.now() + 60_000);
    await page.clock.runFor(3_000);
    await api.delegate("scout", { task: "Counted" });
    await until(async () => {
      await page.clock.runFor(50);
      return rowOf(page, "Counted").isVisible();
    });
    await page.clock.runFor(500);
    await page.getByRole("link", { name: /^scout: .*1 waits/ }).waitFor();
    // So do those of its page, its workers and its pause, and a form that somebody fills in stays.
    await page.clock.resume();
    await showView(page, "#/agents?name=scout");
    await page.getByRole("link", { name: "0 working, 0 asking, 1 queued" }).waitFor();
    await page.getByLabel("Description").fill("Looks around");
    await api.lease("scout", { worker_id: "scout-host" });
    await page.getByRole("link", { name: "1 working, 0 asking, 0 queued" }).waitFor();
    await page.getByText("scout-host").waitFor();
    await api.call("POST", "/v1/agents/scout/pause");
    await api.delegate("scout", { task: "One more" });
    await page.getByRole("button", { name: "Resume" }).waitFor();
    expect(await page.getByLabel("Description").inputValue()).toBe("Looks around");
  });

  test("a question that arrives while the page is hidden is notified, once the reader has asked for that", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const { page, context } = await openTab("about:blank");
    await context.grantPermissions(["notifications"], { origin: url });
    // A browser without a screen shows no notification.
    await context.addInitScript(() => {
      const shown: unknown[] = [];
      const notices: Recorded[] = [];
      class Recorded extends EventTarget {
        static permission = "default";
        onclick = (): void => undefined;
        close(): void {
          notices.pop();
        }
        static async requestPermission() {
          Recorded.permission = "granted";
          return Recorded.permission;
        }
        constructor(title: string, { body, tag }: NotificationOptions) {
          super();
          notices.push(this);
          shown.push({ title, body, hasTag: tag !== undefined });
        }
      }
      Object.assign(globalThis, { Notification: Recorded, shown, notices });
    });
    await page.goto(url);
    await signIn(page);
    const ask = async (task: string) => {
      const { id } = (await api.delegate("scout", { task })).body;
      const [{ lease_id: lease }] = (await api.lease("scout")).body.leases;
      await api.interrupt(lease, { text: "May I?" });
      await page.locator(".needs .question", { hasText: task.slice(0, 90) }).waitFor();
      return id;
    };
    const shown = () => page.evaluate("globalThis.shown");
    await setHidden(page, true);
    await ask("Nobody asked for it");
    expect(await shown()).toEqual([]);
    await setHidden(page, false);
    await page.locator(".account summary").click();
    await tick(page.getByLabel("Notify me of questions"));
    await ask("It is in view");
    expect(await shown()).toEqual([]);
    await setHidden(page, true);
    const id = await ask(`Deploy it ${"x".repeat(200)}`);
    await until(async () => (await page.title()) === "(3) Errand");
    expect(await shown()).toEqual([
      { title: "scout asks", body: `Deploy it ${"x".repeat(90)}…`, hasTag: true },
    ]);
    await page.evaluate("globalThis.notices[0].onclick()");
    await page.locator(".summary", { hasText: "Deploy it" }).waitFor();
    expect(page.url()).toContain(`open=${id}`);
  });
});
