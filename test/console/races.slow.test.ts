/** Answers, events and readings that overtake each other. Needs a build. */
import type { Page, Request } from "playwright-core";
import { describe, expect, test } from "vitest";
import { as, client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, pass, SKIP, showView } from "../support/browser.ts";
import { until } from "../support/until.ts";

const LOST = /Failed to load resource|net::ERR_/;

async function signIn(page: Page, token = OPERATOR): Promise<void> {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Live" }).waitFor();
}

/** A promise that resolves when `open` is called. */
function gate<T = void>() {
  let open = (_value: T): void => undefined;
  const opened = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { open: (value: T) => open(value), opened };
}

/** Delays the matching requests, not their answers, until the returned function is called. */
async function delay(page: Page, address: RegExp) {
  let waiting = 0;
  const { open: release, opened: released } = gate();
  await page.route(address, async (route) => {
    waiting += 1;
    await released;
    await route.continue();
  });
  return { release, waiting: () => waiting };
}

type Api = ReturnType<typeof client>;
async function ask(api: Api, question: Record<string, unknown>): Promise<string> {
  const [{ lease_id: lease }] = (await api.lease("deployer")).body.leases;
  return (await api.interrupt(lease, question)).body.interrupt_id;
}

const lastAnswer = async (api: Api, id: string) => (await api.get(id)).body.history.at(-1)?.metadata ?? {};

/** What shows that an answer is the broker's. */
const brokerOf = ({ headers }: Response) => ({ "errand-broker": headers.get("errand-broker") ?? "" });

describe.skipIf(SKIP)("in Chromium", () => {
  test("an answer that is being sent can no longer be taken back", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("deployer");
    const { id } = (await api.delegate("deployer", { task: "Deploy it" })).body;
    await ask(api, { text: "Now?", options: ["approve", "deny"] });
    const { page } = await openTab(url, { movesClock: true });
    await signIn(page);
    const answers = await delay(page, /\/answer$/);
    const card = page.locator(".needs .question");
    await card.getByRole("button", { name: "Approve" }).click();
    await card.getByRole("button", { name: "Undo" }).waitFor();
    await pass(page, 4);
    await until(() => answers.waiting() === 1);
    await card.locator("text=Approved, sending").waitFor();
    expect(await card.getByRole("button", { name: "Undo" }).count()).toBe(0);
    expect(await card.locator(".answer").getAttribute("inert")).not.toBeNull();
    answers.release();
    await page.locator(".question.over", { hasText: "Approved" }).waitFor();
    expect(await lastAnswer(api, id)).toMatchObject({ decision: "approve" });
    // A screen reader would read an age that grows every second.
    expect(await page.locator("[role=status] time").count()).toBe(0);
  });

  test("the next question of an open delegation gets a form of its own", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("deployer");
    const { id } = (await api.delegate("deployer", { task: "Deploy it" })).body;
    const first = await ask(api, { kind: "auth", text: "The password of the registry?" });
    const { page } = await openTab(url);
    await signIn(page);
    await showView(page, `#/live?open=${id}`);
    const question = page.locator(".delegation .question");
    await question.getByLabel("Secret (agent only)").fill("hunter2");
    const readings = await delay(page, new RegExp(`/delegations/${id}$`));
    await api.answer(id, first, { text: "from a terminal" });
    await ask(api, { text: "What shall the announcement say?" });
    await until(() => readings.waiting() > 0);
    readings.release();
    await question.locator("text=What shall the announcement say?").waitFor();
    expect(await question.getByLabel("Answer in words").inputValue()).toBe("");
  });

  test("a list that was read before a delegation ended does not bring it back", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const { id } = (await api.delegate("scout", { task: "Short" })).body;
    const { page } = await openTab(url);
    const { open: release, opened: released } = gate();
    let isRead = false;
    await page.route(/\/v1\/delegations\?.*submitted/, async (route) => {
      const response = await route.fetch();
      isRead = true;
      await released;
      await route.fulfill({ response });
    });
    await signIn(page);
    await until(() => isRead);
    const followed = page.waitForResponse((response) => response.url().endsWith(id));
    await api.cancel(id);
    await followed;
    release();
    await page.locator("text=Nothing in progress").waitFor();
  });

  test("a question that could not be read at first is shown later", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("deployer");
    const { id } = (await api.delegate("deployer", { task: "Deploy it" })).body;
    const { page } = await openTab(url, { movesClock: true });
    await signIn(page);
    await page.locator(".row", { hasText: "Deploy it" }).waitFor();
    // Rows of the live view are read again when their leases end.
    await showView(page, "#/agents");
    const failed = page.waitForResponse((response) => response.url().endsWith(id));
    await page.route(new RegExp(`/delegations/${id}$`), (route) => route.fulfill({ json: "from a proxy" }), {
      times: 1,
    });
    const schema = { type: "object", properties: { password: { type: "string" } } };
    await ask(api, { kind: "auth", text: "Now?", schema });
    await failed;
    await until(async () => {
      await pass(page, 11);
      return page.locator(".needs .question", { hasText: "Now?" }).isVisible();
    });
    // A form for access hides what is typed, and the browser does not keep it.
    const secret = page.locator(".needs").getByLabel("password");
    expect(await secret.getAttribute("type")).toBe("password");
    expect(await page.locator("form.fields").getAttribute("autocomplete")).toBe("off");
  });

  test("a question stays when so much is live that the page does not read all of it", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("deployer");
    await api.delegate("deployer", { task: "Deploy it" });
    await ask(api, { text: "Now?" });
    const { page } = await openTab(url);
    const headers = brokerOf(await fetch(`${url}/healthz`));
    await page.route(/\/v1\/delegations\?.*submitted/, (route) =>
      route.fulfill({ headers, json: { delegations: [], next_cursor: "more", scanned_to: null } }),
    );
    await signIn(page);
    await page.locator("h1", { hasText: "1 delegation: 1 asking" }).waitFor();
    expect(await page.locator(".needs .question").count()).toBe(1);
  });

  test("a question that expires says so, also where the clock of the page is behind", async () => {
    const { url, clock, gateway } = await startBroker();
    const api = client(url);
    await api.agent("deployer");
    await api.delegate("deployer", { task: "Deploy it" });
    await ask(api, { text: "Now?", options: ["approve", "deny"], expires_in_seconds: 60 });
    const { page } = await openTab(url);
    await signIn(page);
    await showView(page, "#/needs");
    const card = page.locator(".inbox-detail .question");
    await card.getByRole("button", { name: "Approve" }).hover();
    clock.offset_ms += 61_000;
    await gateway.sweep.tick();
    await card.getByText("Nobody answered in time").waitFor();
    await page.locator(".ask-row").getByText("Nobody answered in time").waitFor();
  });

  test("a search shows nothing of the search before it, and a period is the same in every time zone", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    for (const task of ["Alpha", "Beta"]) await api.delegate("scout", { task });
    const { page } = await openTab(url, { timezoneId: "Asia/Tokyo" });
    const { open: release, opened: released } = gate();
    const headers = { authorization: `Bearer ${OPERATOR}` };
    // The whole list has two pages of Alphas.
    await page.route(/\/v1\/delegations\?(?!.*(?:state|q|since)=)/, async (route) => {
      const all = await fetch(`${url}/v1/delegations`, { headers });
      const { delegations } = await all.json();
      const alpha = delegations.find((one: { task_preview: string }) => one.task_preview === "Alpha");
      const isSecond = route.request().url().includes("cursor=second");
      if (isSecond) await released;
      const rows = Array.from({ length: 50 }, (_, n) => ({
        ...alpha,
        id: alpha.id.slice(0, -2) + String(n + 10),
      }));
      await route.fulfill({
        headers: brokerOf(all),
        json: { delegations: rows, next_cursor: isSecond ? null : "second", scanned_to: null },
      });
    });
    await signIn(page);
    await showView(page, "#/find");
    const asked = page.waitForRequest(/cursor=second/);
    await page.getByRole("button", { name: "Older ones" }).click();
    const older = await asked;
    const isOver = new Promise<void>((resolve) => {
      const end = (request: Request) => request === older && resolve();
      page.on("requestfinished", end);
      page.on("requestfailed", end);
    });
    await page.getByLabel("Text of the task").fill("Beta");
    const rows = page.locator(".found");
    await until(async () => (await rows.allTextContents()).join().includes("Beta"));
    release();
    await isOver;
    await page.getByRole("button", { name: "More filters" }).click();
    expect(await rows.count()).toBe(1);
    const both = /since=2020-01-01T00%3A00%3A00.000Z&until=2999-01-01T00%3A00%3A00.000Z/;
    const narrowed = page.waitForRequest(both);
    // Two fields at once, as a program fills them.
    await page.evaluate(() => {
      for (const [name, value] of [
        ["since", "2020-01-01T09:00"],
        ["until", "2999-01-01T09:00"],
      ] as const) {
        const field = document.querySelector<HTMLInputElement>(`input[name=${name}]`);
        if (!field) throw new Error(`no field ${name}`);
        field.value = value;
        field.dispatchEvent(new Event("input", { bubbles: true }));
      }
    });
    await narrowed;
    const elsewhere = await openTab(page.url(), { timezoneId: "America/New_York" });
    const search = elsewhere.page.waitForRequest(/\/v1\/delegations\?.*since=2020/);
    await elsewhere.page.getByLabel("Token").fill(OPERATOR);
    await elsewhere.page.getByRole("button", { name: "Sign in" }).click();
    expect((await search).url()).toContain("since=2020-01-01T00%3A00%3A00.000Z");
    expect(await elsewhere.page.getByLabel("From").inputValue()).toBe("2019-12-31T19:00");
  });

  test("an open delegation is read again when events are lost", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const { id } = (await api.delegate("scout", { task: "Lost" })).body;
    const { page } = await openTab(url);
    const { open: reset, opened: cursor } = gate<string>();
    const isStream = /\/v1\/events(?!.*limit=1)/;
    await page.route(
      isStream,
      async (route) => {
        const at = await cursor;
        const data = JSON.stringify({ id: at, type: "RESET" });
        const headers = brokerOf(await fetch(`${url}/healthz`));
        const body = `id: ${at}\ndata: ${data}\n\n`;
        await route.fulfill({ headers, contentType: "text/event-stream", body });
      },
      { times: 1 },
    );
    await signIn(page);
    await showView(page, `#/live?open=${id}`);
    await page.locator(".delegation .state", { hasText: "queued" }).waitFor();
    await api.cancel(id);
    const json = { accept: "application/json" };
    reset((await api.call("GET", "/v1/events?limit=1", undefined, json)).body.cursor);
    await page.locator(".delegation .state", { hasText: "canceled" }).waitFor();
  });

  test("Copy copies on plain HTTP, too, and says when it cannot", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const { id } = (await api.delegate("scout", { task: "Copied" })).body;
    const { page, context } = await openTab("about:blank");
    await context.addInitScript("Object.defineProperty(navigator, 'clipboard', { value: undefined })");
    await page.goto(url);
    await signIn(page);
    await showView(page, `#/live?open=${id}`);
    const more = page.locator(".tools-menu summary");
    const copy = page.locator(".tools-menu .copy-line button");
    await more.click();
    await copy.click();
    await page.locator(".delegation-top", { hasText: "Copied" }).waitFor();
    await page.getByLabel("A follow-up for the agent").focus();
    // The Escape of an input method closes nothing.
    await page.evaluate(() => {
      const init = { key: "Escape", isComposing: true, bubbles: true };
      document.activeElement?.dispatchEvent(new KeyboardEvent("keydown", init));
    });
    await page.keyboard.press("Control+V");
    expect(await page.getByLabel("A follow-up for the agent").inputValue()).toBe(id);
    await page.evaluate("document.execCommand = () => false");
    await more.click();
    await copy.click();
    await page.locator(".delegation-top", { hasText: "Not copied" }).waitFor();
  });

  test("sessions of several tabs and of one after another leave each other alone", async () => {
    const { url } = await startBroker();
    const api = client(url);
    const ann = await as(url, "approver:ann");
    await api.agent("deployer");
    const code = async () => (await api.call("POST", "/v1/sessions/codes")).body.code;
    const { page, context } = await openTab(url, { expected: LOST });
    await signIn(page, ann.token);
    const second = await context.newPage();
    await second.goto(`${url}/#code=${await code()}`);
    await second.getByRole("button", { name: "Sign in as operator" }).click();
    await second.locator(".account summary", { hasText: "operator" }).waitFor();
    // Ann's session ends in the first tab, and the newer one of the second stays.
    await page.locator("text=Another tab of this browser signed in").waitFor();
    expect(await second.evaluate("localStorage.getItem('errand-session')")).not.toBeNull();
    await second.close();

    // The late refusal of an old session does not end the next one.
    const ben = await as(url, "approver:ben");
    const agents = await delay(page, /\/v1\/agents/);
    await signIn(page, ben.token);
    await until(() => agents.waiting() === 1);
    await api.call("DELETE", `/v1/tokens/${ben.tokenId}`);
    await page.locator("text=Your session has ended").waitFor();
    const cay = await as(url, "approver:cay");
    await signIn(page, cay.token);
    const refused = page.waitForResponse(
      (response) => response.url().includes("/v1/agents") && response.status() === 401,
    );
    agents.release();
    await refused;
    await page.locator(".agent-row").waitFor();
    expect(await page.locator("text=Your session has ended").count()).toBe(0);
  });

  test("agents that are read last are shown under a pointer that rests", async () => {
    const { url } = await startBroker();
    await client(url).agent("deployer");
    const { page } = await openTab(url);
    const agents = await delay(page, /\/v1\/agents/);
    let lists = 0;
    page.on("response", (response) => {
      if (/\/v1\/delegations\?/.test(response.url())) lists += 1;
    });
    await page.mouse.move(640, 400);
    await signIn(page);
    await until(() => agents.waiting() === 1 && lists >= 2);
    // The page draws what it has, and finds what is under the pointer.
    await page.evaluate(
      () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
    );
    await page.mouse.move(642, 402);
    agents.release();
    await page.locator(".agent-row").waitFor();
    expect(await page.locator(".news").count()).toBe(0);
  });
});
