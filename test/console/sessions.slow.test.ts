/** Sessions of the console: who is signed in, what each may do, and errors in plain words. Needs a build. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import type { Message } from "../../src/schema/a2a.ts";
import { as, client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, pass, SKIP, showView, stopClock } from "../support/browser.ts";
import { until } from "../support/until.ts";
import { setScene } from "./scene.ts";

async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Live" }).waitFor();
}

const VIEWS = [
  "find",
  "charts",
  "agents?name=coder",
  "agents?part=tokens",
  "agents?part=schedules",
  "agents?part=rules",
  "agents?part=notifications",
];
const LOST = /Failed to load resource|net::ERR_/;

/** Each principal: its buttons that change something, and the delegations of the scene that it may see. */
const PRINCIPALS = [
  { principal: "viewer:vic", may: ["Notify me in this browser"], sees: ["working", "failed"] },
  {
    principal: "approver:ann",
    may: [
      "Answer",
      "Approve",
      "Both",
      "Cancel",
      "Deny",
      "Notify me in this browser",
      "Send",
      "Yes, for 20 min",
    ],
    sees: ["working", "asking"],
  },
  {
    principal: "caller:alice",
    may: [
      "+ Delegate",
      "Answer",
      "Approve",
      "Cancel",
      "Delegate again",
      "Deny",
      "Erase",
      "Notify me in this browser",
      "Send",
      "Yes, for 20 min",
    ],
    sees: ["working", "asking", "completed"],
  },
  { principal: "agent:coder", may: ["+ Delegate", "Notify me in this browser", "Save"], sees: ["working"] },
];
/** Buttons that change nothing at the broker. */
const HARMLESS = [
  ...["To the view", "More filters", "Copy", "Copy reply", "Download reply", "See why"],
  ...[
    "Go to Ctrl+K",
    "Copy link",
    "Raw JSON",
    "Go to the question",
    "Edit",
    "Last week",
    "This week",
    "Reading …",
    "New schedule",
  ],
  // Widen and Close have signs.
  "",
];

describe.skipIf(SKIP)("in Chromium", () => {
  test("an answer that waits is sent when the page closes, also if a part of the page came late", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("deployer");
    const { body } = await api.delegate("deployer", { task: "Deploy it" });
    const [{ lease_id: lease }] = (await api.lease("deployer")).body.leases;
    await api.interrupt(lease, { text: "Now?", options: ["approve", "deny"] });
    const { page, context } = await openTab("about:blank", { expected: LOST });
    let failures = 1;
    await context.route(/console\/later-/, (route) => (failures-- > 0 ? route.abort() : route.continue()));
    await context.addInitScript(() => {
      const { fetch } = globalThis;
      globalThis.fetch = (input, init) => {
        if (init?.keepalive) localStorage.setItem("outlives the page", String(init.method));
        return fetch(input, init);
      };
    });
    await page.goto(url);
    await signIn(page, OPERATOR);
    await page.getByRole("button", { name: "Deny" }).click();
    await page.goto("about:blank");
    await until(async () => (await api.get(body.id)).body.history.at(-1)?.metadata?.decision === "deny");
    await page.goto(url);
    expect(await page.evaluate("localStorage.getItem('outlives the page')")).toBe("POST");
  });

  test("an answer that waits is sent when the reader signs out, and never by somebody else", async () => {
    const { url } = await startBroker();
    const api = client(url);
    const [ann, ben] = await Promise.all([as(url, "approver:ann"), as(url, "approver:ben")]);
    await api.agent("deployer");
    const { id } = (await api.delegate("deployer", { task: "Deploy it" })).body;
    const ask = async () => {
      const [{ lease_id: lease }] = (await api.lease("deployer")).body.leases;
      await api.interrupt(lease, { text: "Now?", options: ["approve", "deny"] });
    };
    await ask();
    const { page } = await openTab(url, { expected: LOST });
    await signIn(page, ann.token);
    await page.getByRole("button", { name: "Deny" }).click();
    await page.locator(".account summary").click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await until(async () => (await api.get(id)).body.history.at(-1)?.metadata?.by === "approver:ann");

    await ask();
    await signIn(page, ben.token);
    await page.getByRole("button", { name: "Approve" }).click();
    await page.locator("text=Approved, not sent yet").waitFor();
    await api.call("DELETE", `/v1/tokens/${ben.tokenId}`);
    await page.locator("text=Your session has ended").waitFor();
    await signIn(page, OPERATOR);
    await page.getByRole("button", { name: "Approve" }).waitFor();
    expect(await page.locator(".needs :is(.answered, .problem)").count()).toBe(0);
    expect((await api.get(id)).body.state).toBe("input_required");
  });

  test("nothing that one person selected, approved or opened is there for the next in the same page", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("deployer", { votes: { needed: 3 } });
    const [ann, ben] = await Promise.all([as(url, "approver:ann"), as(url, "approver:ben")]);
    for (const n of [1, 2, 3]) {
      const { id } = (await api.delegate("deployer", { task: `Deploy ${n}` })).body;
      const [{ lease_id }] = (await api.lease("deployer")).body.leases;
      const action = { name: "deploy", arguments: { n } };
      const { interrupt_id } = (await api.interrupt(lease_id, { text: "Now?", action })).body;
      if (n === 1) await ann.answer(id, interrupt_id, { decision: "approve" });
    }
    const { page } = await openTab(url, { expected: LOST });
    await signIn(page, ann.token);
    await page.getByText("You approved. 2 more are needed.").waitFor();
    await page.getByRole("checkbox", { name: /Deploy 2$/ }).check();
    await page.getByRole("button", { name: "Approve 1" }).waitFor();
    await page.getByRole("heading", { name: "Live" }).click();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
    await api.call("DELETE", `/v1/tokens/${ann.tokenId}`);
    await page.getByText("Your session has ended").waitFor();
    await signIn(page, ben.token);
    await page.locator(".needs").getByText("ann approved").first().waitFor();
    expect(await page.getByText("your approval is void").count()).toBe(0);
    expect(await page.getByRole("checkbox", { checked: true }).count()).toBe(0);
    expect(await page.getByRole("dialog").count()).toBe(0);
  });

  test("a revoked token signs out while watching, and its secret is gone", async () => {
    const { url } = await startBroker();
    const api = client(url);
    const viewer = await as(url, "viewer:vic");
    await api.agent("scout");
    const { page } = await openTab(url, { expected: LOST });
    await signIn(page, viewer.token);
    await api.call("DELETE", `/v1/tokens/${viewer.tokenId}`);
    await page.locator("text=Your session has ended").waitFor();
    expect(await page.evaluate("JSON.stringify({ ...sessionStorage, ...localStorage })")).not.toContain(
      viewer.token,
    );
  });

  test("a link signs in once; signing out ends the session in every tab", async () => {
    const { url } = await startBroker();
    const api = client(url);
    const { body } = await api.call("POST", "/v1/sessions/codes");
    const { page, context } = await openTab(`${url}/#code=${body.code}`, { expected: LOST });
    await page.getByRole("heading", { name: "Live" }).waitFor();
    expect(page.url()).not.toContain(body.code);
    expect(await page.evaluate("localStorage.getItem('errand-session')")).not.toContain(OPERATOR);
    const second = await context.newPage();
    await second.goto(url);
    await second.getByRole("heading", { name: "Live" }).waitFor();
    await page.locator(".account summary").click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await second.getByRole("button", { name: "Sign in" }).waitFor();
    await until(async () => (await api.call("GET", "/v1/sessions")).body.sessions.length === 0);
    await page.goto("about:blank");
    await page.goto(`${url}/#code=${body.code}`);
    await page.getByText(/This link was used already.* Ask for another link\.$/).waitFor();
    const another = (await api.call("POST", "/v1/sessions/codes")).body;
    await page.evaluate(`location.hash = "#code=${another.code}"`);
    await page.getByRole("heading", { name: "Live" }).waitFor();
    expect(page.url()).not.toContain(another.code);
  });

  test("a link for somebody else asks first, sends nothing, and ends the session that it replaces", async () => {
    const { url } = await startBroker();
    const api = client(url);
    const [ann, mallory] = await Promise.all([as(url, "approver:ann"), as(url, "caller:mallory")]);
    await api.agent("deployer");
    const { id } = (await api.delegate("deployer", { task: "Deploy it" })).body;
    const [{ lease_id: lease }] = (await api.lease("deployer")).body.leases;
    await api.interrupt(lease, { text: "Now?", action: { name: "deploy", arguments: {} } });
    const code = async (of: typeof ann) => (await of.call("POST", "/v1/sessions/codes")).body.code;
    const sessions = async () => {
      const { body } = await api.call("GET", "/v1/sessions");
      return body.sessions.map((one: { principal: string }) => one.principal).sort();
    };
    const { page, context } = await openTab(url, { expected: LOST, movesClock: true });
    await signIn(page, ann.token);
    const stored = () => page.evaluate("localStorage.getItem('errand-session')");
    const before = await stored();
    const open = (fragment: string) =>
      page.evaluate((to) => {
        location.hash = to;
      }, `#code=${fragment}`);
    const dialog = page.getByRole("dialog");
    const question = page.locator(".needs .question");
    await question.getByRole("button", { name: "Approve" }).click();
    await page.locator("text=Approved, not sent yet").waitFor();

    // The answer waits while the question is open, and goes on waiting when the reader stays.
    const foreign = await code(mallory);
    await open(foreign);
    await dialog.getByRole("heading", { name: "Sign in as caller:mallory?" }).waitFor();
    await dialog.getByText("You are signed in as approver:ann").waitFor();
    await dialog.getByText("1 answer of approver:ann not sent yet").waitFor();
    await pass(page, 30);
    expect((await api.get(id)).body.state).toBe("input_required");
    expect(await sessions()).toEqual(["approver:ann", "caller:mallory"]);
    await page.keyboard.press("Escape");
    await until(async () => (await sessions()).join() === "approver:ann");
    expect(await stored()).toBe(before);
    await question.getByRole("button", { name: "Undo" }).click();

    // A used link says so and changes nothing; neither does a link of one's own.
    await open(foreign);
    await dialog.getByText("This link was used already").waitFor();
    await dialog.getByRole("button", { name: "Stay approver:ann" }).click();
    const redeemed = page.waitForResponse((response) => response.request().method() === "DELETE");
    await open(await code(ann));
    await redeemed;
    expect([await dialog.count(), await stored(), await sessions()]).toEqual([0, before, ["approver:ann"]]);

    // In another tab the same question; the first tab is signed out with it, and its answer is never sent.
    // The clock of both stands still, so that the answer waits however long a slow machine takes.
    const second = await context.newPage();
    await second.goto(`${url}/#code=${await code(mallory)}`);
    await second.getByRole("button", { name: "Sign in as caller:mallory" }).waitFor();
    await stopClock(page);
    await question.getByRole("button", { name: "Approve" }).click();
    await page.locator("text=Approved, not sent yet").waitFor();
    await second.getByRole("button", { name: "Sign in as caller:mallory" }).click();
    await second.locator(".account summary", { hasText: "mallory" }).waitFor();
    await page.locator("text=Another tab of this browser signed in").waitFor();
    await until(async () => (await sessions()).join() === "caller:mallory");
    await pass(page, 30);
    expect((await api.get(id)).body.history).toHaveLength(1);
    await context.clock.resume();
    await page.reload();
    await page.locator(".account summary", { hasText: "mallory" }).waitFor();
  });

  test("a wrong token is refused with a reason, and nothing is stored", async () => {
    const { url } = await startBroker();
    const { page } = await openTab(url, { expected: LOST });
    await page.getByLabel("Token").fill("errand_wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    const refusal = page.getByRole("alert").filter({ hasText: "The broker does not know this token." });
    await refusal.waitFor();
    await page.locator(".hint", { hasText: /npm start.*errand invite NAME --approver/ }).waitFor();
    // A text that no header can carry is not a token either.
    await page.reload();
    await page.getByLabel("Token").fill("errand_€");
    expect(await refusal.count()).toBe(0);
    await page.getByRole("button", { name: "Sign in" }).click();
    await refusal.waitFor();
    expect(await page.evaluate("localStorage.getItem('errand-session')")).toBeNull();
  });

  test("everybody has the buttons that are allowed, and none that is refused", async () => {
    const { url } = await startBroker();
    const { ids } = await setScene(url);
    const { page } = await openTab(url);
    const refused: string[] = [];
    page.on("response", (response) => {
      if (response.status() >= 400) refused.push(`${response.status()} ${response.url()}`);
    });
    for (const { principal, may, sees } of PRINCIPALS) {
      await signIn(page, (await as(url, principal)).token);
      const found = new Set<string>();
      for (const view of [...VIEWS, ...sees.map((name) => `live?open=${ids[name]}`)]) {
        await showView(page, `#/${view}`);
        if (view.startsWith("live")) {
          await page.locator(".tools-menu summary").click();
          await page.locator(".tools-menu[open]").waitFor();
        }
        const names = await page.locator(":is(button, a.button):visible").allTextContents();
        for (const name of names) found.add(name.trim().replace(/ [ad]$/, ""));
      }
      for (const harmless of HARMLESS) found.delete(harmless);
      expect([principal, ...[...found].sort()]).toEqual([principal, ...may]);
      await showView(page, "#/live");
      await page.locator(".account summary").click();
      await page.getByRole("button", { name: "Sign out" }).click();
    }
    expect(refused).toEqual([]);
  });

  test("what is not there, and a broker that is away, in plain words", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const { id } = (await api.delegate("scout", { task: "Look around" })).body;
    const { page, context } = await openTab(url, { expected: LOST, movesClock: true });
    let isThere = false;
    await context.route(/console\/charts-/, (route) => (isThere ? route.continue() : route.abort()));
    await signIn(page, OPERATOR);
    await page.locator(".agent-row").waitFor();
    const problem = page.locator(".problem");
    await showView(page, `#/live?open=${"dlg_0_".padEnd(id.length, "0")}`);
    const texts = [await problem.textContent()];
    await showView(page, `#/live?open=${id.slice(0, -4)}`);
    texts.push(await problem.textContent());
    await showView(page, "#/agents?name=nobody");
    texts.push(await problem.textContent());
    await showView(page, `#/live?open=${id}`);
    await page.getByLabel("A follow-up for the agent").fill("Hurry");
    await context.setOffline(true);
    await page.getByRole("button", { name: "Send" }).click();
    await until(async () => {
      await pass(page, 2);
      return problem.isVisible();
    });
    texts.push(await problem.textContent());
    expect(texts).toEqual([
      expect.stringMatching(
        /^There is no delegation 'dlg_\S+'. Check the id. Finished delegations are deleted/,
      ),
      "The address of this page names no delegation. Its id may be cut off. ",
      "There is no agent of this name. It may have been deleted: Agents lists those that exist.",
      "The broker does not answer. You can send this again when it is back.",
    ]);
    // What was typed is still there.
    expect(await page.getByLabel("A follow-up for the agent").inputValue()).toBe("Hurry");
    // A part of the page that was not loaded yet comes when the broker is back.
    await page.evaluate("location.hash = '#/charts'");
    await page.getByText("A part of the page did not load.").waitFor();
    isThere = true;
    await context.setOffline(false);
    const chart = page.getByRole("slider", { name: "Delegated: 1" });
    await until(async () => {
      await pass(page, 2);
      return chart.isVisible();
    });
    await showView(page, `#/live?open=${id}`);
    // Ctrl+Enter sends.
    await page.getByLabel("A follow-up for the agent").fill("Hurry\nplease");
    await page.getByLabel("A follow-up for the agent").press("Control+Enter");
    await page.locator(".conversation", { hasText: "Hurry" }).waitFor();
    expect(await problem.count()).toBe(0);
  });

  test("a change that an absent broker did not take can be sent again when it is back, and is made once", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const { id } = (await api.delegate("scout", { task: "Look around" })).body;
    const { page, context } = await openTab(url, { expected: LOST, movesClock: true });
    await signIn(page, OPERATOR);
    await showView(page, `#/live?open=${id}`);
    await page.getByRole("button", { name: "Cancel" }).click();
    const dialog = page.getByRole("dialog");
    await context.setOffline(true);
    await dialog.getByRole("button", { name: "Cancel delegation" }).click();
    await until(async () => {
      await pass(page, 2);
      return dialog
        .getByText("The broker does not answer. You can send this again when it is back.")
        .isVisible();
    });
    expect(await dialog.getByRole("button", { name: "Send again" }).count()).toBe(0);
    await context.setOffline(false);
    const again = dialog.getByRole("button", { name: "Send again" });
    await until(async () => {
      await pass(page, 2);
      return again.isVisible();
    });
    expect((await api.get(id)).body.state).toBe("submitted");
    await again.click();
    await dialog.waitFor({ state: "hidden" });
    expect((await api.get(id)).body.state).toBe("canceled");
  });

  test("a part that could not be read is read again by itself", async () => {
    const { url } = await startBroker();
    const { page } = await openTab(url, { expected: LOST, movesClock: true });
    await signIn(page, OPERATOR);
    let isOverloaded = true;
    await page.route(/\/v1\/tokens$/, (route) =>
      isOverloaded ? route.fulfill({ status: 503, body: "", headers: {} }) : route.continue(),
    );
    await page.evaluate("location.hash = '#/agents?part=tokens'");
    await until(async () => {
      await pass(page, 2);
      return page.locator(".problem").isVisible();
    });
    isOverloaded = false;
    await until(async () => {
      await pass(page, 5);
      return page.getByText("No token yet").isVisible();
    });
    expect(await page.locator(".problem").count()).toBe(0);
  });

  test("an answer that an absent broker did not take is offered again when it is back, and is sent once", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const ask = async (text: string): Promise<string> => {
      const { id } = (await api.delegate("scout", { task: text })).body;
      const [{ lease_id: lease }] = (await api.lease("scout")).body.leases;
      await api.interrupt(lease, { text, options: ["approve", "deny"] });
      return id;
    };
    const [open, closed] = [await ask("Stays open?"), await ask("Is closed?")];
    const { page, context } = await openTab(url, { expected: LOST, movesClock: true });
    await signIn(page, OPERATOR);
    const card = (text: string) => page.locator(".needs .question", { hasText: text });
    const keys: (string | undefined)[] = [];
    page.on("request", (request) => {
      if (request.url().endsWith(`/${open}/answer`)) keys.push(request.headers()["idempotency-key"]);
    });
    for (const text of ["Stays open?", "Is closed?"])
      await card(text).getByRole("button", { name: "Approve" }).waitFor();
    await context.setOffline(true);
    for (const text of ["Stays open?", "Is closed?"])
      await card(text).getByRole("button", { name: "Approve" }).click();
    for (const text of ["Stays open?", "Is closed?"])
      await until(async () => {
        await pass(page, 2);
        return card(text).getByText("The broker does not answer").isVisible();
      });
    const { interrupt } = (await api.get(closed)).body;
    await (await as(url, "approver:ann")).answer(closed, interrupt.id, { decision: "deny" });
    await context.setOffline(false);
    await until(async () => {
      await pass(page, 2);
      return card("Stays open?").getByText("Approved, but not sent: the broker was away.").isVisible();
    });
    await page.getByText("approver ann denied this").waitFor();
    await card("Stays open?").getByRole("button", { name: "Send again" }).click();
    await until(async () => (await api.get(open)).body.state === "submitted");
    expect(
      (await api.get(open)).body.history.filter(({ role }: Message) => role === "ROLE_USER"),
    ).toHaveLength(1);
    expect(new Set(keys).size).toBe(1);
    await until(async () => (await page.locator(".needs .problem").count()) === 0);
  });
});
