/** What a reader sees within seconds is whole: no number of an agent's line is cut, and an empty view says so. Needs a build. */
import type { Locator, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { as, client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, SKIP, showView } from "../support/browser.ts";
import { LONG } from "./scene.ts";

/** The texts in these places of which a part is not drawn. */
const cutIn = (page: Page, places: string) =>
  page
    .locator(places)
    .evaluateAll((all) =>
      all.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent),
    );

async function open(url: string, hash: string, options: Parameters<typeof openTab>[1] = {}): Promise<Page> {
  const { page } = await openTab(url, options);
  await page.goto(`${url}/${hash}`);
  await page.getByLabel("Token").fill(OPERATOR);
  await page.getByRole("button", { name: "Sign in" }).click();
  return page;
}

describe.skipIf(SKIP)("in Chromium", () => {
  test("on a phone, the line of an agent shows its numbers whole, and a long name does not hide what is wrong", async () => {
    const { url, clock } = await startBroker();
    const api = client(url);
    for (const name of ["support-triage", LONG]) await api.agent(name);
    await api.delegate("support-triage");
    await api.lease("support-triage", { lease_seconds: 3600 });
    for (let n = 0; n < 12; n += 1) await api.delegate("support-triage");
    await api.delegate("support-triage", { delay_seconds: 7_200 });
    await api.delegate(LONG);
    clock.offset_ms += 1_620_000;
    const page = await open(url, "#/live", { viewport: { width: 390, height: 844 } });
    const line = page.locator(".agent-row[data-row=support-triage]");
    await line.getByText("12", { exact: true }).waitFor();
    await line.getByText("27 min", { exact: true }).waitFor();
    await line.getByText("wait", { exact: true }).waitFor();
    await page.locator(".alarm-line", { hasText: LONG }).waitFor();
    expect(await cutIn(page, ".agent-part > :not(.agent-name), .agent-part .presence > span")).toEqual([]);
    const alarm = page.locator(".alarm-line", { hasText: LONG }).locator(".alarm-text");
    expect(await alarm.evaluate((text) => text.scrollHeight - text.clientHeight)).toBeLessThanOrEqual(1);
    // Its colon stands behind the name, not alone at the start of the next line.
    const gap = await alarm.evaluate((text) => {
      const link = text.querySelector("a");
      const colon = document.createRange();
      const node = link?.nextSibling;
      if (!link || !node) return null;
      colon.setStart(node, 0);
      colon.setEnd(node, 1);
      return Math.round(colon.getBoundingClientRect().left - link.getBoundingClientRect().right);
    });
    expect(gap).toBe(0);
  });

  test.each([
    ["a window", 1280],
    ["a phone", 390],
  ])("in %s, the box above the rows of Find is in line with theirs", async (_, width) => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("coder");
    await api.delegate("coder", { task: "Fix the login test" });
    const page = await open(url, "#/find", { viewport: { width, height: 720 } });
    const center = async (name: RegExp) => {
      const box = await page.getByRole("checkbox", { name }).boundingBox();
      return box === null ? null : box.x + box.width / 2;
    };
    await page.getByText("Fix the login test").waitFor();
    const [above, row] = [await center(/^Select all/), await center(/Fix the login test/)];
    expect(Math.abs((above ?? 0) - (row ?? 99))).toBeLessThanOrEqual(1);
  });

  test("a text from right to left shows its beginning where it is cut, and the header overlaps nothing", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("coder");
    const text = "انشر الخدمة الجديدة إلى الإنتاج اليوم من فضلك ".repeat(5);
    await api.delegate("coder", { task: text });
    const [{ lease_id }] = (await api.lease("coder")).body.leases;
    await api.interrupt(lease_id, { text });
    await api.delegate("coder", { task: text });
    const page = await open(url, "#/live", { viewport: { width: 820, height: 600 } });
    for (const [view, places] of [
      ["live", ".row .row-task"],
      ["find", ".found .row-task"],
      ["needs", ".ask-text"],
    ] as const) {
      await showView(page, `#/${view}`);
      const shown = page.locator(places).first();
      await shown.waitFor();
      // Then the end is cut, at the left.
      expect([view, await shown.evaluate((one) => getComputedStyle(one).direction)]).toEqual([view, "rtl"]);
    }
    const [charts, goTo] = [page.getByRole("link", { name: "Charts" }), page.locator(".go-to")];
    const [left, right] = [await charts.first().boundingBox(), await goTo.boundingBox()];
    expect((left?.x ?? 0) + (left?.width ?? 0)).toBeLessThanOrEqual(right?.x ?? 0);
    await page.setViewportSize({ width: 320, height: 640 });
    const header = await page.locator(".header").evaluate((one) => one.scrollHeight - one.clientHeight);
    expect(header).toBeLessThanOrEqual(0);
  });

  test("with the colours of the system, busy workers, bars and the timeline are still seen", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("coder");
    for (const _ of [1, 2]) await api.delegate("coder");
    const [{ lease_id, delegation }] = (await api.lease("coder")).body.leases;
    await api.heartbeat(lease_id, { progress: { done: 3, total: 8 } });
    const page = await open(url, `#/live?tab=timeline&open=${delegation.id}`, { forcedColors: "active" });
    /** The system's own, by which everything else is drawn. */
    const canvas = /^rgba?\(255, 255, 255(?:, \d)?\)$/;
    const colour = (of: Locator) => of.evaluate((one) => getComputedStyle(one).backgroundColor);
    for (const places of [".agent-cells .slot.busy", ".row-step .meter i", ".fall-bar.working"]) {
      const shown = page.locator(places).first();
      await shown.waitFor({ state: "attached" });
      expect(await colour(shown), places).not.toMatch(canvas);
    }
  });

  test("an option that is no text is marked once it was chosen", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("coder");
    const { id } = (await api.delegate("coder")).body;
    const [{ lease_id }] = (await api.lease("coder")).body.leases;
    const options = [
      { label: "Monday", day: 1 },
      { label: "Sunday", day: 0 },
    ];
    const { interrupt_id } = (await api.interrupt(lease_id, { text: "Which?", options })).body;
    await api.answer(id, interrupt_id, { data: { day: 0, label: "Sunday" } });
    const page = await open(url, `#/live?open=${id}`);
    await page.locator(".conversation .chosen", { hasText: "Sunday" }).waitFor();
    expect(await page.locator(".chosen").count()).toBe(1);
  });

  test("Find takes a caller by name alone, and says what it ignores", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("coder");
    await api.delegate("coder", { task: "Mine" });
    await (await as(url, "caller:alice")).delegate("coder", { task: "Of Alice" });
    const page = await open(url, "#/find?delegator=alice");
    const found = page.locator(".found");
    await found.getByText("Of Alice").waitFor();
    expect(await found.count()).toBe(1);
    await showView(page, "#/find?delegator=A.%20Lice&state=nonsense");
    await found.getByText("Mine").waitFor();
    const chips = await page.locator(".chips li:visible").allTextContents();
    expect(chips).toEqual([
      "nonsense (ignored: nothing can have it) ✕",
      "from A. Lice (ignored: nothing can have it) ✕",
    ]);
  });

  test("charts of a broker where nothing happened say so; of one with work, they are drawn", async () => {
    const { url } = await startBroker();
    const api = client(url);
    const page = await open(url, "#/charts");
    await page.getByText("Nothing happened in the last hour").waitFor();
    expect(await page.locator(".chart").count()).toBe(0);
    await api.agent("coder");
    await api.delegate("coder");
    await page.reload();
    await page.getByRole("heading", { name: "Delegated" }).waitFor();
  });

  test("on a phone, charts say at once how many failed of what ended, and why", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("coder", { limits: { max_attempts: 1 } });
    for (let n = 0; n < 3; n += 1) {
      await api.delegate("coder");
      const { body } = await api.lease("coder");
      const error = { code: "disk_full", message: "No space left" };
      await api.reply(String(body.leases[0]?.lease_id), n === 0 ? { state: "failed", text: "", error } : {});
    }
    const viewport = { width: 390, height: 844 };
    const page = await open(url, "#/charts", { viewport });
    const line = page.getByText(/1 of 3 that ended failed: disk_full$/);
    const box = await line.boundingBox();
    const first = await page.locator(".chart").first().boundingBox();
    expect((box?.y ?? viewport.height) + (box?.height ?? 0)).toBeLessThanOrEqual(first?.y ?? 0);
    await line.getByRole("link", { name: "disk_full" }).click();
    await page.getByText("1 delegation", { exact: true }).waitFor();
  });

  test("a paused agent can be resumed where the head of its work says that it is paused", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("coder");
    const { id } = (await api.delegate("coder")).body;
    await api.call("POST", "/v1/agents/coder/pause");
    const page = await open(url, `#/live?open=${id}`);
    const why = page.locator(".delegation .why");
    await why.getByText("coder is paused until the operator resumes it.").waitFor();
    await why.getByRole("button", { name: "Resume coder" }).click();
    await why.getByText("coder has no worker").waitFor();
    expect((await api.call("GET", "/v1/agents/coder")).body.paused).toBe(false);
    expect(await why.getByRole("button").count()).toBe(0);
  });

  test("numbers say of what: workers and what they hold, what is downloaded, and which priority goes first", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("coder");
    for (let n = 0; n < 4; n += 1) await api.delegate("coder");
    for (const worker_id of ["one", "two"]) await api.lease("coder", { max: 2, worker_id });
    const page = await open(url, "#/agents?name=coder");
    await page.getByText("all busy (4 working)").waitFor();
    await page.getByRole("heading", { name: "Workers 2, with 4 delegations" }).waitFor();
    await page.goto(`${url}/#/delegate`);
    await page.getByText("More options").click();
    await page.getByLabel("Priority higher goes first").waitFor();
  });

  test("the settings of an agent say that to refuse approval in advance does not choose who answers", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("coder");
    const page = await open(url, "#/agents?name=coder");
    const field = page.getByLabel(
      "Approval in advance it does not choose who answers: its delegator always may",
    );
    await field.selectOption("refused: each question waits for an answer");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Changed: approvals.").waitFor();
    expect((await api.call("GET", "/v1/agents/coder")).body.approvals).toBe("person");
  });

  test("the settings of an agent let its operator order the work of a conversation", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("coder");
    const page = await open(url, "#/agents?name=coder");
    await page.getByLabel("Of one conversation").selectOption("one at a time, in order");
    await page.getByLabel("Its last worker is preferred for").fill("30");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Changed: serial_by, sticky_seconds.").waitFor();
    expect((await api.call("GET", "/v1/agents/coder")).body).toMatchObject({
      serial_by: "context",
      sticky_seconds: 30,
    });
  });

  test("Find says you to who delegated, why it failed without a message, and not that a refused repeat was made", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("coder", { limits: { max_attempts: 1 } });
    for (const task of ["Repeated", "Refused"]) {
      await api.delegate("coder", { task });
      const { body } = await api.lease("coder");
      await api.reply(String(body.leases[0]?.lease_id), {
        state: "failed",
        text: "",
        error: { code: "disk_full", message: "" },
      });
    }
    const { delegations } = (await api.call("GET", "/v1/delegations?state=failed")).body;
    const idOf = (task: string): string =>
      delegations.find((one: { task_preview: string }) => one.task_preview === task).id;
    await api.redrive(idOf("Repeated"));
    await api.agent("coder", { limits: { max_waiting: 1 } });
    expect((await api.redrive(idOf("Refused"))).body.code).toBe("queue_full");
    // Looking for the repeat that was refused finds none.
    const page = await open(url, "#/find?state=failed", { expected: /404/ });
    const row = (task: string) => page.locator(".found", { hasText: task });
    await row("Repeated").getByText("failed, tried again, after").waitFor();
    await row("Refused").getByText("failed after").waitFor();
    await row("Refused").getByText("you → coder").waitFor();
    await row("Refused").getByText("no message (disk_full)").waitFor();
    // The page of an agent leads there.
    await page.goto(`${url}/#/agents?name=coder`);
    await page.getByRole("link", { name: "Failed since yesterday" }).click();
    await page.getByText("2 delegations").waitFor();
    expect(page.url()).toContain("target=coder");
  });
});
