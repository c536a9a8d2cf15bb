/** The page of an answer link, on a phone: what it shows, what a press does, and what it says when the link is dead. */
import { describe, expect, test } from "vitest";
import { as } from "../support/broker.ts";
import { holdBack, openTab, SKIP } from "../support/browser.ts";
import { startReceiver } from "../support/receiver.ts";
import { bodies, startSubscribed } from "../support/subscribed.ts";
import { until } from "../support/until.ts";

const PHONE = { viewport: { width: 390, height: 740 }, hasTouch: true, isMobile: true } as const;
/** A refused link is answered with 404, which the browser's log shows. */
const DEAD = /404/;

async function setup() {
  const started = await startSubscribed({ publicUrl: "https://errand.example" });
  const { ann, alice, api, subscribe, tick, url } = started;
  const { url: hook, received } = await startReceiver();
  await subscribe(ann, { events: ["question"], deliver: [{ kind: "webhook", url: hook }] });
  await tick();
  const ask = async (question: Record<string, unknown>) => {
    const { body } = await alice.delegate("scout", { task: "Clean up the database" });
    const [lease] = (await api.lease("scout")).body.leases;
    await api.interrupt(lease.lease_id, question);
    const before = received.length;
    await tick();
    await until(() => received.length > before);
    const link = new URL(String(bodies(received).at(-1)?.link));
    return { id: String(body.id), link: `${url}${link.pathname}${link.hash}` };
  };
  return { ...started, ask };
}

describe.skipIf(SKIP)("in Chromium", () => {
  test("it shows the whole action, says whose name it is, and approves once", async () => {
    const { api, ask } = await setup();
    const table = `users_${"x".repeat(500)}`;
    const { id, link } = await ask({
      text: "Drop <b>it</b>?",
      action: { name: "drop", arguments: { table } },
    });
    const { page, context } = await openTab(link, { ...PHONE, expected: DEAD });
    await page.getByRole("heading", { name: "scout asks" }).waitFor();
    const text = await page.locator("main").textContent();
    for (const part of ["Clean up the database", "Drop <b>it</b>?", "drop", table, "as approver:ann"])
      expect(text).toContain(part);
    // Nothing is wider than the phone.
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
    const buttons = page.getByRole("button");
    for (const box of await Promise.all((await buttons.all()).map((one) => one.boundingBox())))
      expect(box?.height ?? 0).toBeGreaterThanOrEqual(44);
    expect((await api.get(id)).body.state).toBe("input_required");
    await page.getByLabel("A comment for the agent").fill("but keep a copy");
    await page.getByRole("button", { name: "Approve" }).tap();
    await page.getByRole("heading", { name: "Approved" }).waitFor();
    expect((await api.get(id)).body.state).toBe("submitted");
    const again = await context.newPage();
    await again.goto(link);
    await again.getByRole("heading", { name: "This link answers nothing" }).waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "This link answers nothing" }).waitFor();
  });

  test("whatever is asked fits a phone, is seen as it is, and its addresses can be followed", async () => {
    const { ask, api } = await setup();
    const wide = async (link: string) => {
      const { page } = await openTab(link, PHONE);
      await page.getByRole("heading", { name: "asks" }).waitFor();
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
      return page;
    };
    const asked = await ask({
      message: {
        parts: [
          { text: "See https://git.example/web/pull/4812, then decide." },
          { raw: "A".repeat(4_000), mediaType: "image/png", filename: "chart.png" },
          { data: { lines: 3 } },
        ],
      },
      action: { name: "run", arguments: { sql: "select 1;\nselect 2;", path: "photo\u202egpj.exe" } },
    });
    const page = await wide(asked.link);
    await page.getByRole("link", { name: "https://git.example/web/pull/4812", exact: true }).waitFor();
    await page.getByText("File: chart.png (image/png, 3 kB).").waitFor();
    const values = await page.locator("dd").allTextContents();
    expect(values).toEqual(["select 1;\nselect 2;", "photo\\u{202e}gpj.exe"]);
    expect(await page.locator("main").textContent()).not.toContain("AAAA");
    await api.lease("scout");
    const { link } = await ask({ text: "Which?", options: ["approve", "x".repeat(200)] });
    await wide(link);
    // Opened in the same tab, only what follows the sign of the address changes.
    await page.goto(link);
    await page.getByText("Which?").waitFor();
  });

  test("a page that cannot reach the broker says so, offers to try again, and says that it sends", async () => {
    const { ask } = await setup();
    const { link } = await ask({ text: "Now?", options: ["approve", "deny"] });
    const { page } = await openTab("about:blank", { ...PHONE, expected: /Failed to load resource/ });
    await page.route("**/v1/links/question", (route) => route.abort());
    await page.goto(link);
    await page.getByRole("heading", { name: "The question could not be read" }).waitFor();
    await page.unroute("**/v1/links/question");
    await page.getByRole("button", { name: "Try again" }).tap();
    await page.getByRole("heading", { name: "scout asks" }).waitFor();
    const { release } = await holdBack(page, /links\/answer/);
    await page.getByRole("button", { name: "Approve" }).tap();
    await page.getByText("Sending …").waitFor();
    release();
    await page.getByRole("heading", { name: "Approved" }).waitFor();
  });

  test("of several approvals it says who gave them, and that more are needed", async () => {
    const { api, ask, url } = await setup();
    await api.call("PATCH", "/v1/agents/scout", { votes: { needed: 3 } });
    const question = { text: "Now?", action: { name: "deploy", arguments: { to: "prod" } }, edit: true };
    const { id, link } = await ask(question);
    const { interrupt } = (await api.get(id)).body;
    const bob = await as(url, "approver:bob");
    await bob.answer(id, interrupt.id, { decision: "approve" });
    const { page } = await openTab(link, PHONE);
    await page.getByText("1 of 3 approvals: approver:bob.").waitFor();
    await page.getByRole("button", { name: "Approve" }).tap();
    await page.getByText("2 of 3 approvals: approver:bob, approver:ann.").waitFor();
    await page.getByText("scout waits until more people approve.").waitFor();
    const other = await ask(question);
    const open = (await api.get(other.id)).body.interrupt;
    await bob.answer(other.id, open.id, { decision: "approve", data: { to: "staging" } });
    const { page: changed } = await openTab(other.link, PHONE);
    await changed.getByText("Others have approved something else").waitFor();
    const signIn = changed.getByRole("link", { name: "Sign in to see what they approved" });
    expect(await signIn.getAttribute("href")).toBe(`./#/d/${other.id}`);
    expect(await changed.getByRole("button").allInnerTexts()).toEqual(["Deny"]);
  });

  test("whose approval does not count may deny, but not where deny is no choice", async () => {
    const { api, ask } = await setup();
    const asked = [
      await ask({ text: "Now?", options: ["approve", "deny"] }),
      await ask({ text: "Where?", options: ["approve", "staging"] }),
    ];
    await api.call("PATCH", "/v1/agents/scout", { votes: { needed: 2, by: ["approver:bob"] } });
    const words = "Your approval does not count for this question; others must approve it.";
    for (const [index, said] of [`${words} You can deny it.`, words].entries()) {
      const { page } = await openTab(asked[index]?.link ?? "", PHONE);
      await page.getByText(said, { exact: true }).waitFor();
      expect(await page.getByRole("button").count()).toBe(1 - index);
    }
  });

  test("options are buttons, and a free answer is a text", async () => {
    const { api, ask } = await setup();
    const choice = await ask({ text: "Which?", options: ["red", "blue"] });
    const { page } = await openTab(choice.link, PHONE);
    await page.getByText(/^Open until .* (UTC|GMT\S*|[A-Z]{3,5}), or until somebody answers\.$/).waitFor();
    // The buttons are the choices.
    expect(await page.locator("main").textContent()).not.toContain("Choices");
    await page.getByRole("button", { name: "blue" }).tap();
    await page.getByRole("heading", { name: "Sent: blue" }).waitFor();
    await api.lease("scout");
    const free = await ask({ text: "What now?" });
    const { page: other } = await openTab(free.link, PHONE);
    await other.getByLabel("Your answer").fill("Wait.");
    await other.getByRole("button", { name: "Send" }).tap();
    await other.getByRole("heading", { name: "Sent" }).waitFor();
    const { events } = (await api.events(free.id)).body;
    expect(events.at(-1)).toMatchObject({ status: "answered", via: "link", answer_preview: "Wait." });
  });
});
