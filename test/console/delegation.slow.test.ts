/** One delegation in the console: its questions, attempts, tree and lease. Needs a build. */
import { describe, expect, test } from "vitest";
import { type EventLog, readEvents } from "../../src/console/delegation/read-events.ts";
import type { DelegationEvent } from "../../src/schema/event.ts";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, pass, SKIP, showView } from "../support/browser.ts";
import { eventWith } from "../support/event.ts";
import { until } from "../support/until.ts";
import { setLongTalk } from "./scene.ts";

const START = Date.parse("2026-01-01T00:00:00Z");

function event(seq: number, second: number, status: string): DelegationEvent {
  const state = status === "leased" ? "working" : "submitted";
  return eventWith({ seq, at: new Date(START + second * 1000).toISOString(), state, status });
}

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
    // It looks answered: it says so, what was chosen is marked, and the answer is right below it.
    const branch = talk.locator(".said-block", { hasText: "Which branch?" });
    for (const question of [branch, proposed])
      await question.locator(".author", { hasText: /talker asked .* ago *answered$/ }).waitFor();
    expect(await branch.locator(".chosen").allTextContents()).toEqual(["main "]);
    await branch.locator("+ .given", { hasText: "operator answered" }).waitFor();
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
    // Two questions, with who answered them, and the pause before the follow-up.
    const rows = page.locator(".fall-row");
    const marks = rows.first().locator(".fall-mark");
    await marks.nth(1).waitFor();
    const note = page.locator(".fall-note");
    // They are so close that one covers the other.
    await marks.first().focus();
    await note.getByText(/^0:\d\d asked: Which branch\? · answered by operator after .*: main$/).waitFor();
    await marks.nth(1).hover();
    await note.getByText(/^0:\d\d asked: May I\? · approved by operator after/).waitFor();
    await page.locator(".event-gap", { hasText: "after 5 min" }).waitFor();
    // The newest first, and the reports as one line, which opens.
    const texts = () => page.locator(".event .event-what .said").allTextContents();
    const run = "progress 30 times, last: 29/30 commit 29";
    expect((await texts()).slice(0, 2)).toEqual(["follow-up · by operator", run]);
    await page.getByRole("button", { name: "30 times: show each" }).click();
    await page.locator(".event.in-run", { hasText: "0/30 commit 0" }).first().waitFor();
    expect(await page.locator(".event.in-run").count()).toBe(30);
    await page.getByRole("button", { name: "Oldest first" }).click();
    await until(async () => (await texts())[0] === "delegated");
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

    // Its parts, kept current.
    const row = (text: string) => rows.filter({ hasText: text });
    const child = row("coder");
    await child.locator(".fall-bar.queued").waitFor();
    const [{ lease_id }] = (await api.lease("coder")).body.leases;
    const usage = { input_tokens: 7 };
    await api.heartbeat(lease_id, { usage, progress: { done: 1 } });
    await child.locator(".fall-bar.working").waitFor();
    await api.delegate("scout", { task: "One more part", parent_id: id });
    await page.mouse.move(0, 0);
    await row("One more part").waitFor();
    await page.getByText("Together: at least 7 tokens in").waitFor();
    await child.getByRole("link").click();
    await page.locator(".summary", { hasText: "A part of" }).waitFor();
    // Without children, it says how to get one. An old link leads to the tree.
    const hash = new URL(page.url()).hash.replace("#/live?", "#/live?tab=tree&");
    await showView(page, hash);
    await page.getByRole("link", { name: "Timeline" }).and(page.locator("[aria-current=page]")).waitFor();
    await page.getByRole("link", { name: "Delegate a part" }).click();
    const part = page.getByLabel("A part of");
    expect(hash).toContain(await part.inputValue());
    expect(await part.inputValue()).toMatch(/^dlg_/);
  });

  test("a waterfall has each delegation below its parent, over several pages, and says if its own parent is gone", async () => {
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
    const rows = page.locator(".fall-row");
    await rows.nth(55).waitFor();
    const tasks = await rows.evaluateAll((all) =>
      all.map((one) => `${one.getAttribute("aria-level")} ${one.querySelector(".said")?.textContent}`),
    );
    expect(tasks.filter((task, at) => task !== tasks[at - 1])).toEqual([
      ...["1 Above", "2 Root", "3 First", "4 Deep", "5 Part", "3 Last"],
    ]);
    // A long tree scrolls by itself, and the events stay below.
    const grid = page.getByRole("treegrid");
    expect((await grid.boundingBox())?.height).toBeLessThan(600);

    // The keys move between the rows, close and open them, and go there.
    await rows.filter({ hasText: "Root" }).focus();
    const focused = () => page.evaluate("document.activeElement?.querySelector('.said')?.textContent");
    for (const [key, task] of [
      ["j", "First"],
      ["ArrowDown", "Deep"],
      ["ArrowLeft", "Deep"],
      ["k", "First"],
      ["ArrowLeft", "First"],
      ["End", "Last"],
      ["ArrowUp", "First"],
    ] as const) {
      await page.keyboard.press(key);
      await until(async () => (await focused()) === task);
    }
    expect(await rows.count()).toBe(4);
    await page.locator("[aria-label='Events of writer'] .event", { hasText: "delegated" }).waitFor();
    const open = rows.filter({ hasText: "First" });
    expect(await open.getAttribute("aria-label")).toMatch(
      /^writer: First, queued, delegated .* ago, 52 under it are hidden$/,
    );
    await page.keyboard.press("ArrowRight");
    await rows.filter({ hasText: "Deep" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "First" }).waitFor();

    const { leases } = (await api.lease("lead")).body;
    await api.reply(leases[0].lease_id, { text: "done" });
    expect((await api.erase(above)).status).toBe(204);
    await showView(page, "#/find");
    await showView(page, `#/live?tab=tree&open=${root}`);
    await page.getByText(`Its parent …${above.slice(-8)} was erased, or you may not see it.`).waitFor();
  });

  test("a retry is a second bar after its pause, and what is live grows without a jump", async () => {
    const { url, clock } = await startBroker();
    const api = client(url);
    await api.agent("tester", { backoff: { initial_ms: 400 } });
    const { id, created_at } = (await api.delegate("tester", { task: "Run every suite", max_attempts: 2 }))
      .body;
    const wait = { wait_seconds: 10, lease_seconds: 600 };
    const lease = async () => (await api.lease("tester", wait)).body.leases[0].lease_id;
    const error = { code: "flaky", message: "It timed out", retryable: true };
    await api.reply(await lease(), { state: "failed", text: "", error });
    await lease();
    clock.offset_ms += 30_000;
    const { page } = await openTab(url, { movesClock: true });
    await page.getByLabel("Token").fill(OPERATOR);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Live" }).waitFor();
    await showView(page, `#/live?tab=timeline&open=${id}`);
    const bars = page.locator(".fall-row .fall-bar");
    await bars.last().waitFor();
    const looks = await bars.evaluateAll((all) => all.map((one) => one.className.split(" ")[1]));
    expect(looks.filter((look) => look !== "queued")).toEqual(["failed", "pause", "working"]);
    const last = bars.last();
    await last.hover();
    await page.locator(".fall-note", { hasText: /^attempt 2 · working · since 0:\d\d$/ }).waitFor();
    const places = () => bars.evaluateAll((all) => all.map((one) => one.getBoundingClientRect()));
    // A minute after it was delegated: the next tick of the axis is far.
    await page.clock.pauseAt(Date.parse(created_at) + 61_000 - clock.offset_ms);
    await pass(page, 1);
    const before = await places();
    await pass(page, 4);
    await until(async () => ((await places()).at(-1)?.width ?? 0) > (before.at(-1)?.width ?? 0));
    // Only the bar that goes on has changed.
    expect((await places()).map(({ x }) => x)).toEqual(before.map(({ x }) => x));
    await pass(page, 60);
    await until(async () => ((await places()).at(-1)?.x ?? 0) < (before.at(-1)?.x ?? 0));
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
      const cut = () =>
        page.locator("[data-question] :not(.cut)").evaluateAll((all) =>
          all
            .filter(
              (one) => getComputedStyle(one).overflow !== "visible" && !one.matches("input, .sr-only, .bar"),
            )
            .filter((one) => one.scrollHeight > one.clientHeight + 1 || one.scrollWidth > one.clientWidth + 1)
            .map((one) => one.outerHTML),
        );
      // The page folds texts once it knows its size, and formats them in the background.
      await expect.poll(() => card("Very long").locator(".fold-more").count()).toBe(2);
      await expect.poll(cut).toEqual([]);
      expect(await card("Long task").locator(".fold-more").count()).toBe(0);
    }
    const long = card("Very long");
    const more = long.getByRole("button", { name: /^Show all 30\d lines$/ });
    const isAboveApprove = async () => {
      const [last, approve] = await Promise.all([
        long.locator(".formatted").evaluate((one) => one.getBoundingClientRect().bottom),
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
    await page.locator(".working-now", { hasText: "next sign of life due within 2 min" }).waitFor();
    await page.locator(".summary", { hasText: "Used at least 1,500 tokens in, 0.5 USD, m-1" }).waitFor();
    const { version } = (await api.get(id)).body;
    clock.offset_ms += 110_000;
    await api.heartbeat(lease);
    expect((await api.get(id)).body.version).toBe(version);
    // Without the heartbeat, ten seconds would be left.
    await pass(page, 110);
    await page.locator(".working-now", { hasText: "next sign of life due within 2 min" }).waitFor();
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
      .locator(".working-now .late", { hasText: "No report for 11 min. Its worker still holds it." })
      .waitFor();
  });
});
