/** One delegation in the console: its questions, attempts, tree and lease. Needs a build. */
import { describe, expect, test } from "vitest";
import { lanesOf, lineOf, nearestOf, scaleOf } from "../../src/console/delegation/lane-data.ts";
import { type EventLog, readEvents } from "../../src/console/delegation/read-events.ts";
import type { DelegationEvent } from "../../src/schema/event.ts";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, pass, SKIP, showView } from "../support/browser.ts";
import { setLongTalk } from "./scene.ts";

const START = Date.parse("2026-01-01T00:00:00Z");

function event(seq: number, second: number, status: string): DelegationEvent {
  return {
    id: `${seq}-0`,
    type: "DELEGATION_STATUS",
    delegation_id: "dlg_0_1",
    seq,
    at: new Date(START + second * 1000).toISOString(),
    state: status === "leased" ? "working" : "submitted",
    target: "scout",
    delegator: "operator",
    context_id: "ctx_1",
    status,
  };
}

test("attempts are lanes, their leases bars; a long pause is short, and says how long it was", () => {
  const events = [
    event(1, 0, "queued"),
    event(2, 2, "leased"),
    event(3, 10, "lease_expired"),
    event(4, 310, "leased"),
  ];
  const lanes = lanesOf(events);
  const seconds = (ms: number | null) => ms && (ms - START) / 1000;
  expect(lanes.map(({ attempt, leases }) => [attempt, leases.map((lease) => lease.map(seconds))])).toEqual([
    [1, [[2, 10]]],
    [2, [[310, null]]],
  ]);
  const line = lineOf(events.map(({ at }) => Date.parse(at)));
  const drawn = (end: number, whole: number) => {
    const { place, breaks } = scaleOf(line, START + end * 1000);
    const places = [0, 10, 310].map((second) => place(START + second * 1000) * whole);
    return [places, ...breaks.map(({ at, label }) => `${label} at ${Math.round(at * whole)}`)];
  };
  // Of 22 drawn seconds, the pause takes 6.
  expect(drawn(316, 22)).toEqual([[0, 10, 16], "5 min at 13"]);
  expect(drawn(490, 22)).toEqual([[0, 10, 16], "5 min at 13", "3 min at 19"]);
  // The clock of the page may be behind.
  expect(drawn(300, 16)).toEqual([[0, 10, 16], "5 min at 13"]);
});

test("an attempt goes on in its lane when its lapsed lease is reclaimed", () => {
  const lanes = lanesOf([
    event(1, 0, "queued"),
    event(2, 2, "leased"),
    event(3, 10, "lease_expired"),
    event(4, 11, "message"),
    event(5, 12, "reclaimed"),
    event(6, 20, "broker_away"),
    event(7, 30, "lease_expired"),
    event(8, 31, "leased"),
  ]);
  const seconds = (ms: number | null) => ms && (ms - START) / 1000;
  expect(
    lanes.map(({ attempt, leases, events }) => [
      attempt,
      leases.map((one) => one.map(seconds)),
      events.length,
    ]),
  ).toEqual([
    [
      1,
      [
        [2, 10],
        [12, 30],
      ],
      7,
    ],
    [2, [[31, null]], 1],
  ]);
});

test("the nearest tick is that of the lane, or of any lane for a pointer between them", () => {
  const ticks = [
    { attempt: 1, place: 0 },
    { attempt: 1, place: 0.4 },
    { attempt: 2, place: 0.5 },
    { attempt: 2, place: 1 },
  ];
  const found = (attempt: number) => [-1, 0.1, 0.46, 0.8, 2].map((place) => nearestOf(ticks, attempt, place));
  expect([found(1), found(2), found(0)]).toEqual([
    [0, 0, 1, 1, 1],
    [2, 2, 2, 3, 3],
    [0, 0, 2, 3, 3],
  ]);
});

test.each([
  { found: 1, perPage: 1000, requests: ["0"] },
  { found: 1000, perPage: 1000, requests: ["0"] },
  { found: 1001, perPage: 1000, requests: ["0", "1000-0"] },
  // Large events make a page short.
  { found: 7, perPage: 3, requests: ["0", "3-0", "6-0"] },
])("each event is read once, and none after the last: $found, $perPage at a time", async (given) => {
  const { found, perPage, requests } = given;
  const all = Array.from({ length: found }, (_, index) => event(index + 1, index, "progress"));
  const asked: string[] = [];
  const events = async (_id: string, limit: number, _signal?: AbortSignal, from = "0") => {
    asked.push(from);
    return all.slice(Number.parseInt(from, 10)).slice(0, Math.min(limit, perPage));
  };
  const log: EventLog = { events: [], after: "0" };
  // Events may be read before the version that they belong to arrives.
  for (const version of [found - 1, found, found])
    await readEvents({ events }, { id: "dlg_0_1", version }, log, new AbortController().signal);
  expect(log.events).toEqual(all);
  expect(asked).toEqual(requests);
});

test("reading ends where the other events are no longer stored", async () => {
  const log: EventLog = { events: [], after: "0" };
  const events = async (_id: string, _limit: number, _signal?: AbortSignal, from = "0") =>
    from === "0" ? [event(3, 0, "progress")] : [];
  await readEvents({ events }, { id: "dlg_0_1", version: 5 }, log, new AbortController().signal);
  expect(log).toEqual({ events: [event(3, 0, "progress")], after: "3-0" });
});

describe.skipIf(SKIP)("in Chromium", () => {
  test("what was asked and answered, the tree, and the attempts", async () => {
    const { url, clock } = await startBroker();
    const id = await setLongTalk(url);
    clock.offset_ms += 300_000;
    await client(url).message(id, "After a long pause, see https://wiki.example/pause.");
    const { page } = await openTab(url);
    await page.getByLabel("Token").fill(OPERATOR);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Live" }).waitFor();

    await showView(page, `#/live?open=${id}`);
    const talk = page.locator(".conversation");
    // An answer can be understood without the question's form.
    // Options that were offered look like text, not like buttons.
    const offered = talk.locator(".offered li", { hasText: "release/2.4" });
    expect(await offered.evaluate((one) => getComputedStyle(one).borderTopWidth)).toBe("0px");
    const proposed = talk.locator("li", { has: page.locator(".proposal", { hasText: "deploy" }) });
    await proposed.locator(".members", { hasText: "hosts" }).locator("li", { hasText: "3" }).waitFor();
    await proposed.locator(".author", { hasText: /talker asked .*ago/ }).waitFor();
    const link = talk.getByRole("link", { name: "https://wiki.example/pause", exact: true });
    expect(await link.evaluate((one) => one.outerHTML)).toMatch(
      /href="https:\/\/wiki\.example\/pause" rel="noreferrer noopener" target="_blank"/,
    );
    const approved = talk.locator("li", { hasText: /operator approved .*ago/ });
    await approved.waitFor();
    // The agent's reports since then are one line, which opens.
    const reports = approved.locator("+ .reports");
    await reports.locator("summary", { hasText: /^29\/30 commit 29 · .*ago.*29 earlier reports$/ }).waitFor();
    expect(await reports.locator("ol").count()).toBe(0);
    await reports.locator("summary").click();
    await reports.locator("ol li", { hasText: "0/30 commit 0" }).first().waitFor();
    expect(await talk.locator(".reports").count()).toBe(1);

    await showView(page, `#/live?tab=timeline&open=${id}`);
    await page.locator(".lanes .lease").first().waitFor();
    await page.locator(".break-label", { hasText: "5 min" }).waitFor();
    await page.locator(".event-gap", { hasText: "⋯ 5 min" }).waitFor();
    const lanes = page.getByRole("slider", { name: "Events over time, 1 attempt" });
    const shown = page.locator(".lane-text");
    await page.locator(".tabs a").last().focus();
    await page.keyboard.press("Tab");
    await shown.getByText(/^\+5:\d\d · after a pause of 5 min · follow-up · by operator$/).waitFor();
    expect(await lanes.getAttribute("aria-valuetext")).toBe(await shown.textContent());
    await page.keyboard.press("ArrowLeft");
    await shown.getByText("29/30 commit 29").waitFor();
    await page.keyboard.press("Home");
    await shown.getByText("+0.0 s · delegated").waitFor();
    expect(await lanes.getAttribute("aria-valuenow")).toBe("1");
    await page.locator(".lanes .tick:not(.marked)").last().hover({ force: true });
    await shown.getByText("follow-up").waitFor();
    await lanes.blur();
    await lanes.click({ position: { x: 2, y: 8 } });
    await shown.getByText(/^\+0\.\d s · /).waitFor();
    const reads: (string | null)[] = [];
    page.on("request", (request) => {
      const { pathname, searchParams } = new URL(request.url());
      if (pathname === `/v1/delegations/${id}/events`) reads.push(searchParams.get("after"));
    });
    const api = client(url);
    await api.message(id, "One more thing");
    await page.locator(".event", { hasText: "follow-up" }).nth(1).waitFor();
    // Only the new event was read.
    expect(reads).toEqual([expect.stringMatching(/^[1-9]/)]);

    await showView(page, `#/live?tab=tree&open=${id}`);
    const child = page.locator(".tree a", { hasText: "coder" });
    await child.locator("small", { hasText: "queued" }).waitFor();
    const [{ lease_id }] = (await api.lease("coder")).body.leases;
    await api.heartbeat(lease_id, { usage: { input_tokens: 7 } });
    await child.locator("small", { hasText: "working" }).waitFor();
    await api.delegate("scout", { task: "One more part", parent_id: id });
    await page.locator(".tree a", { hasText: "One more part" }).waitFor();
    await page.getByText("Together: at least 7 tokens in").waitFor();
    await child.click();
    await page.locator(".summary", { hasText: "A part of" }).waitFor();
    // Without children, the tree says how to get one.
    const hash = new URL(page.url()).hash.replace("#/live?", "#/live?tab=tree&");
    await showView(page, hash);
    await page.getByRole("link", { name: "Delegate a part" }).click();
    const part = page.getByLabel("A part of");
    expect(hash).toContain(await part.inputValue());
    expect(await part.inputValue()).toMatch(/^dlg_/);
  });

  test("the tree has each delegation below its parent, over several pages, and says if its own parent is gone", async () => {
    const { url } = await startBroker();
    const api = client(url);
    for (const name of ["lead", "deploy", "writer"]) await api.agent(name);
    const delegate = async (target: string, task: string, parent_id?: string): Promise<string> =>
      (await api.delegate(target, { task, ...(parent_id && { parent_id }) })).body.id;
    const above = await delegate("lead", "Above");
    const root = await delegate("lead", "Root", above);
    const first = await delegate("writer", "First", root);
    await delegate("deploy", "Last", root);
    const deep = await delegate("writer", "Deep", first);
    // More than a page of them.
    const parts = Array.from({ length: 51 }, () => ({ target: "deploy", task: "Part", parent_id: deep }));
    await api.call("POST", "/v1/delegations/batch", { delegations: parts });
    const { page } = await openTab(url, { expected: /status of 404/ });
    await page.getByLabel("Token").fill(OPERATOR);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Live" }).waitFor();
    await showView(page, `#/live?tab=tree&open=${root}`);
    await page.locator(".tree-parent a", { hasText: "Above" }).waitFor();
    const rows = page.locator("ul.tree a");
    await rows.nth(54).waitFor();
    const tasks = await page.locator("ul.tree a .said").allTextContents();
    expect(tasks.filter((task, at) => task !== tasks[at - 1])).toEqual([
      "Root",
      "First",
      "Deep",
      "Part",
      "Last",
    ]);
    const child = page.locator("ul.tree li", { has: page.locator(":scope > a", { hasText: "Deep" }) }).last();
    expect(await child.locator("ul a").count()).toBe(51);
    // Its line goes across to it from that of its parent.
    const x = async (text: string) => (await rows.filter({ hasText: text }).first().boundingBox())?.x ?? 0;
    expect(await x("Part")).toBeGreaterThan(await x("Deep"));
    expect(await x("Deep")).toBeGreaterThan(await x("First"));
    expect(await x("First")).toBe(await x("Last"));

    const { leases } = (await api.lease("lead")).body;
    await api.reply(leases[0].lease_id, { text: "done" });
    expect((await api.erase(above)).status).toBe(204);
    await showView(page, "#/find");
    await showView(page, `#/live?tab=tree&open=${root}`);
    await page.getByText(`Its parent …${above.slice(-8)} was erased, or you may not see it.`).waitFor();
  });

  test("what is to be approved is shown whole, or says that it is cut and shows the rest", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("asker");
    const lines = (count: number) =>
      Array.from({ length: count }, (_, n) => `${n + 1}. A line.`)
        .join("\n")
        .concat("\nThe last sentence.");
    const ask = async (task: string, question: Record<string, unknown>) => {
      await api.delegate("asker", { task });
      const { leases } = (await api.lease("asker")).body;
      await api.interrupt(leases[0].lease_id, question);
    };
    const action = { name: "mail.send", arguments: { to: ["all"], body: "word ".repeat(200) } };
    await ask(`${"Long task. ".repeat(9)} the end`, { text: lines(60), action });
    await ask("Very long", { text: lines(300), action: { ...action, arguments: { body: lines(300) } } });
    await ask("Options", { text: "Which?", options: ["One word ".repeat(40), "Two"] });
    const { page } = await openTab(url);
    await page.getByLabel("Token").fill(OPERATOR);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Live" }).waitFor();
    const card = (text: string) => page.locator("article[data-question]", { hasText: text });
    // All cards: beside another view, and on a phone.
    for (const [view, viewport] of [
      ["#/live", { width: 1280, height: 720 }],
      ["#/needs", { width: 390, height: 844 }],
    ] as const) {
      await page.setViewportSize(viewport);
      await showView(page, view);
      await card("Options").locator(".option").first().waitFor();
      // Elements whose content runs out of them, and is cut or scrolls.
      const cut = await page.locator("[data-question] :not(.cut)").evaluateAll((all) =>
        all
          .filter(
            (one) => getComputedStyle(one).overflow !== "visible" && !one.matches("input, .sr-only, .bar"),
          )
          .filter((one) => one.scrollHeight > one.clientHeight + 1 || one.scrollWidth > one.clientWidth + 1)
          .map((one) => one.outerHTML),
      );
      expect(cut).toEqual([]);
      expect(await card("Long task").locator(".fold-more").count()).toBe(0);
      expect(await card("Very long").locator(".fold-more").count()).toBe(2);
    }
    const long = card("Very long");
    const more = long.getByRole("button", { name: /^Show all 30\d lines$/ });
    const isAboveApprove = async () => {
      const [last, approve] = await Promise.all([
        long.locator(".text").evaluate((one) => one.getBoundingClientRect().bottom),
        long.getByRole("button", { name: "Approve" }).evaluate((one) => one.getBoundingClientRect().top),
      ]);
      return last <= approve;
    };
    expect(await isAboveApprove()).toBe(false);
    await more.first().click();
    await long.getByRole("button", { name: "Show less" }).waitFor();
    expect(await isAboveApprove()).toBe(true);
    await long.locator(".fold-more", { hasText: "Only the first 80 lines are shown." }).waitFor();
  });

  test("work in progress shows its step and time to go, and the open one its lease, which a heartbeat without an event extends", async () => {
    const { url, clock } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const { id } = (await api.delegate("scout", { task: "Look around" })).body;
    const { page } = await openTab(url, { movesClock: true });
    await page.getByLabel("Token").fill(OPERATOR);
    await page.getByRole("button", { name: "Sign in" }).click();
    const row = page.locator(".row", { hasText: "Look around" });
    await row.locator("text=queued").waitFor();
    const [{ lease_id: lease }] = (await api.lease("scout", { lease_seconds: 120 })).body.leases;
    await row.locator("text=working").waitFor();
    const usage = { input_tokens: 1500, cost: 0.5, currency: "USD", model: "m-1" };
    await api.heartbeat(lease, {
      progress: { done: 1, tools_used: ["grep", "sed"], eta_seconds: 400 },
      usage,
    });
    await row.locator("text=1 · about 7 min to go").waitFor();
    await row.click();
    await page.locator(".working-now", { hasText: "2 tools: grep, sed" }).waitFor();
    await page.locator(".working-now", { hasText: "lease 2 min left" }).waitFor();
    await page.locator(".summary", { hasText: "Used at least 1,500 tokens in, 0.5 USD, m-1" }).waitFor();
    const { version } = (await api.get(id)).body;
    clock.offset_ms += 110_000;
    await api.heartbeat(lease);
    expect((await api.get(id)).body.version).toBe(version);
    // Without the heartbeat, ten seconds would be left.
    await pass(page, 110);
    await page.locator(".working-now", { hasText: "lease 2 min left" }).waitFor();
    const error = { code: "disk_full", message: "No space left", retryable: true };
    await api.reply(lease, { state: "failed", text: "", error });
    // Why it waits: when it is tried again, and how the last attempt ended.
    await page.locator(".why", { hasText: "The last attempt: failed: No space left." }).waitFor();

    await api.agent("silent");
    const silent = (await api.delegate("silent", { task: "Falls silent" })).body.id;
    const { leases } = (await api.lease("silent", { lease_seconds: 1_800 })).body;
    await api.heartbeat(leases[0].lease_id, { progress: { message: "calling the vendor" } });
    const quiet = page.locator(".row", { hasText: "Falls silent" });
    await quiet.getByText("calling the vendor").waitFor();
    expect(await quiet.locator(".late").count()).toBe(0);
    clock.offset_ms += 660_000;
    await pass(page, 660);
    await quiet.locator(".late", { hasText: "No report for 11 min" }).waitFor();
    await showView(page, `#/live?open=${silent}`);
    await page
      .locator(".working-now .late", { hasText: "No report for 11 min. Its worker keeps the lease." })
      .waitFor();
  });
});
