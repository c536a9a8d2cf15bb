/**
 * Measures the console under load, with a broker of its own and Chromium; prints a table, and fails if an aim is missed.
 * Not a test: it takes some minutes and wants a quiet machine. Limit: browser, broker and load share the cores.
 * Usage: npm run build && node --import tsx test/console/load.ts [--live 500] [--per-second 50] [--seconds 60]
 *   [--finished 10000] [--events 10000] [--only live]
 */
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { chromium, type Page } from "playwright-core";
import { z } from "zod";
import { LIMITS } from "../../src/schema/limits.ts";
import { client } from "../support/broker.ts";
import { CHROMIUM } from "../support/chromium.ts";
import { signIn, withBroker } from "./own-broker.ts";

const { values } = parseArgs({
  options: {
    live: { type: "string", default: "500" },
    "per-second": { type: "string", default: "50" },
    seconds: { type: "string", default: "60" },
    finished: { type: "string", default: "10000" },
    events: { type: "string", default: "10000" },
    only: { type: "string" },
  },
});
const LIVE = Number(values.live);
const PER_SECOND = Number(values["per-second"]);
const SECONDS = Number(values.seconds);
const FINISHED = Number(values.finished);
const EVENTS = Number(values.events);

const AGENTS = 10;
const BATCH = 100;
const NEW_ROWS = 10;
const MORE_REPORTS = 50;
const NEVER_MS = 600_000;

type Api = ReturnType<typeof client>;
const nameOf = (n: number): string => `agent-${n}`;

/** Submits to the agents in turn. Returns the ids. */
async function submit(api: Api, count: number, agents: number, task: string): Promise<string[]> {
  const ids: string[] = [];
  for (let from = 0; from < count; from += BATCH) {
    const delegations = Array.from({ length: Math.min(BATCH, count - from) }, (_, index) => ({
      target: nameOf((from + index) % agents),
      task: `${task} ${from + index}`,
    }));
    const { status, body } = await api.call("POST", "/v1/delegations/batch", { delegations });
    if (status >= 300) throw new Error(`batch: ${status} ${JSON.stringify(body)}`);
    for (const { delegation } of body.results) ids.push(delegation.id);
  }
  return ids;
}

async function leaseAll(api: Api, agents: number): Promise<string[]> {
  const found: string[] = [];
  for (let n = 0; n < agents; n += 1) {
    for (;;) {
      const request = { max: LIMITS.leases.value, lease_seconds: 3600, wait_seconds: 0 };
      const { status, body } = await api.lease(nameOf(n), request);
      if (status !== 200) throw new Error(`lease: ${status} ${JSON.stringify(body)}`);
      const { leases } = body;
      if (leases.length === 0) break;
      for (const { lease_id } of leases) found.push(String(lease_id));
    }
  }
  return found;
}

/** What the page did since the last call: its longest task, its longest pause between two frames. */
const smoothnessSchema = z.object({ longest_task_ms: z.int(), longest_frame_ms: z.int() });
type Smoothness = z.infer<typeof smoothnessSchema>;

/** Runs in every page before its own code. */
function watchPage(): void {
  const seen = { task: 0, frame: 0 };
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) seen.task = Math.max(seen.task, duration);
  }).observe({ type: "longtask", buffered: true });
  let shift = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      if ("value" in entry && "hadRecentInput" in entry && entry.hadRecentInput === false)
        shift += Number(entry.value);
    }
    document.documentElement.dataset.shift = String(shift);
  }).observe({ type: "layout-shift", buffered: true });
  let before = performance.now();
  const onFrame = (now: number) => {
    seen.frame = Math.max(seen.frame, now - before);
    before = now;
    requestAnimationFrame(onFrame);
  };
  requestAnimationFrame(onFrame);
  addEventListener("errand-smoothness", () => {
    document.documentElement.dataset.smoothness = JSON.stringify({
      longest_task_ms: Math.round(seen.task),
      longest_frame_ms: Math.round(seen.frame),
    });
    seen.task = 0;
    seen.frame = 0;
  });
}

/** How far the layout shifted since the page was opened, as Chromium scores it, without what input caused. */
const shiftOf = (page: Page): Promise<number> =>
  page.evaluate(() => Number(document.documentElement.dataset.shift ?? 0));

async function smoothness(page: Page): Promise<Smoothness> {
  const json = await page.evaluate(() => {
    dispatchEvent(new Event("errand-smoothness"));
    return document.documentElement.dataset.smoothness;
  });
  return smoothnessSchema.parse(JSON.parse(json ?? "null"));
}

/** Bytes of JavaScript objects that are in use. */
async function heapOf(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  return usedSize;
}

/** Scrolls the longest column to its end, a screen at a time. */
async function scrollThrough(page: Page, steps: number): Promise<void> {
  await page.evaluate(async (count) => {
    const columns = [...document.querySelectorAll("*"), document.documentElement].filter(
      (element) => element.scrollHeight > element.clientHeight + 100,
    );
    const longest = columns.sort((a, b) => b.scrollHeight - a.scrollHeight)[0];
    const length = longest?.scrollHeight ?? 0;
    for (let step = 1; step <= count; step += 1) {
      longest?.scrollTo({ top: (length * step) / count });
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
  }, steps);
}

/** The aims: the longest that a task of the page may take, a row to appear, and a view to open; the growth of the heap. */
const AIMS = { taskMs: 200, liveTaskMs: 50, appearMs: 1_000, openMs: 3_000, growthBytes: 2e6, shift: 0.02 };
/** The time for which the shift of the layout is added up. */
const SHIFT_MS = 30_000;

interface Aim {
  readonly text: string;
  readonly isMet: boolean;
}
const atMost = (value: number, most: number, unit = "ms"): Aim => ({
  text: `≤ ${most} ${unit}`,
  isMet: value <= most,
});
const noLongTask = ({ longest_task_ms }: Smoothness, most = AIMS.taskMs): Aim => ({
  text: `no task over ${most} ms`,
  isMet: longest_task_ms <= most,
});
const openedWithin = (ms: number): Aim => atMost(Math.round(ms), AIMS.openMs);

const rows: [string, string, Aim][] = [];
function report(what: string, figure: string, aim: Aim): void {
  rows.push([what, figure, aim]);
  console.error(`${what}: ${figure} (${verdict(aim)})`);
}
const verdict = ({ text, isMet }: Aim): string => `${text}: ${isMet ? "met" : "MISSED"}`;
const MB = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
const smooth = ({ longest_task_ms, longest_frame_ms }: Smoothness): string =>
  `longest task ${longest_task_ms} ms, longest frame ${longest_frame_ms} ms`;

async function liveView(page: Page, api: Api, url: string): Promise<void> {
  await submit(api, LIVE, AGENTS, "work that goes on");
  const leases = await leaseAll(api, AGENTS);
  const loadedFrom = performance.now();
  await page.goto(`${url}/#/live`);
  await page.getByText(`${LIVE} delegations`).first().waitFor();
  const openedMs = performance.now() - loadedFrom;
  report(`open Live with ${LIVE} delegations`, `${Math.round(openedMs)} ms`, openedWithin(openedMs));
  await sleep(3_000);
  await smoothness(page);
  const heap = [await heapOf(page)];

  const appearTimes: number[] = [];
  /** When it was read, and how far the layout had shifted. */
  const shifts: [at: number, shift: number][] = [];
  const parts: Smoothness[] = [];
  const started = performance.now();
  let sent = 0;
  const calls = new Set<Promise<unknown>>();
  while (performance.now() - started < SECONDS * 1_000) {
    const due = Math.floor(((performance.now() - started) / 1_000) * PER_SECOND);
    for (; sent < due; sent += 1) {
      const progress = { done: sent % 100, total: 100, current_step: `step ${sent}` };
      const call = api.heartbeat(leases[sent % leases.length] ?? "", { progress });
      calls.add(call);
      void call.finally(() => calls.delete(call));
    }
    const round = Math.floor(((performance.now() - started) / (SECONDS * 1_000)) * NEW_ROWS);
    if (appearTimes.length < round) {
      appearTimes.push(await timeToAppear(page, api, appearTimes.length));
      parts.push(await smoothness(page));
      heap.push(await heapOf(page));
      // Discards the pause of the garbage collection that heapOf forces.
      await smoothness(page);
    }
    if (performance.now() - (shifts.at(-1)?.[0] ?? 0) > 1_000)
      shifts.push([performance.now(), await shiftOf(page)]);
    await sleep(20);
  }
  await Promise.all(calls);
  const what = `Live, ${LIVE} delegations, ${(sent / SECONDS).toFixed(0)} events/s for ${SECONDS} s`;
  parts.push(await smoothness(page));
  const worst = {
    longest_task_ms: Math.max(...parts.map((one) => one.longest_task_ms)),
    longest_frame_ms: Math.max(...parts.map((one) => one.longest_frame_ms)),
  };
  report(what, smooth(worst), noLongTask(worst, AIMS.liveTaskMs));
  const shifted = mostWithin(shifts, SHIFT_MS);
  report("its layout shifts in 30 s by, at most", shifted.toFixed(3), {
    text: `≤ ${AIMS.shift}`,
    isMet: shifted <= AIMS.shift,
  });
  report("its JavaScript heap meanwhile", heap.map(MB).join(", "), flat(heap));
  const slowest = Math.round(Math.max(...appearTimes));
  report("a new delegation appears after, at most", `${slowest} ms`, atMost(slowest, AIMS.appearMs));
}

/** The largest growth of a value within this time. */
function mostWithin(values: readonly (readonly [at: number, value: number])[], ms: number): number {
  const growths = values.map(([at, value]) => {
    const [, last = value] = values.findLast(([other]) => other <= at + ms) ?? [];
    return last - value;
  });
  return Math.max(0, ...growths);
}

/** The later half is on average hardly larger than the earlier. */
function flat(heap: readonly number[]): Aim {
  const middle = Math.floor(heap.length / 2);
  const mean = (some: readonly number[]) => some.reduce((sum, one) => sum + one, 0) / some.length;
  const growth = mean(heap.slice(middle)) - mean(heap.slice(0, middle));
  return { text: `grows by less than ${MB(AIMS.growthBytes)}`, isMet: growth < AIMS.growthBytes };
}

/** From the request until the row is drawn; the row is ended again. */
async function timeToAppear(page: Page, api: Api, n: number): Promise<number> {
  const task = `appears ${n}`;
  const from = performance.now();
  const { body } = await api.delegate(nameOf(0), { task });
  await page.waitForFunction(
    (text) => [...document.querySelectorAll("li, a, button")].some((one) => one.textContent?.includes(text)),
    task,
    { timeout: NEVER_MS },
  );
  const took = performance.now() - from;
  await api.cancel(String(body.id));
  return took;
}

async function cancelAll(api: Api, target: string): Promise<void> {
  for (let before: unknown; before !== null; ) {
    const request = { target, limit: 1000, ...(before === undefined ? {} : { before }) };
    const { status, body } = await api.call("POST", "/v1/delegations/cancel", request);
    if (status !== 200) throw new Error(`cancel: ${status} ${JSON.stringify(body)}`);
    before = body.next_before;
  }
}

async function findView(page: Page, api: Api, url: string): Promise<void> {
  await submit(api, FINISHED, AGENTS, "work that is over");
  for (let n = 0; n < AGENTS; n += 1) await cancelAll(api, nameOf(n));
  const from = performance.now();
  await page.goto(`${url}/#/find?state=canceled`);
  const older = page.getByRole("button", { name: /Older ones|Reading/ });
  await older.waitFor();
  const openedMs = performance.now() - from;
  report("open Find", `${Math.round(openedMs)} ms`, openedWithin(openedMs));
  await smoothness(page);
  const pagesFrom = performance.now();
  // The button may be gone by the time of the click.
  while ((await older.count()) > 0) await older.click({ timeout: 1_000 }).catch(() => undefined);
  const readMs = Math.round(performance.now() - pagesFrom);
  const reading = await smoothness(page);
  report(`read all ${FINISHED} page by page`, `${readMs} ms, ${smooth(reading)}`, noLongTask(reading));
  await scrollThrough(page, 300);
  const scrolling = await smoothness(page);
  report(`scroll through ${FINISHED} rows in 300 frames`, smooth(scrolling), noLongTask(scrolling));
}

/** A delegation with many events: its timeline, and its conversation while more arrive. */
async function oneDelegation(page: Page, api: Api, url: string): Promise<void> {
  const [id = ""] = await submit(api, 1, 1, "work with a long history");
  const [lease = ""] = await leaseAll(api, 1);
  // With the submit and the lease, and room for the reports that are to arrive: a delegation has at most 10 000 events.
  const stored = EVENTS - MORE_REPORTS;
  // The broker accepts at most 100 events a second.
  for (let n = 2; n < stored; n += 1) {
    const { body } = await api.heartbeat(lease, { progress: { done: n } });
    if (body.code === "rate_limited") {
      n -= 1;
      await sleep(100);
    }
  }
  const open = async (what: string, tab: string, shown: string) => {
    const from = performance.now();
    await page.goto("about:blank");
    await page.goto(`${url}/#/live?tab=${tab}&open=${id}`);
    await page.locator(shown).first().waitFor();
    const ms = performance.now() - from;
    const opening = await smoothness(page);
    const isMet = openedWithin(ms).isMet && noLongTask(opening).isMet;
    const text = `${openedWithin(ms).text}, ${noLongTask(opening).text}`;
    report(what, `${Math.round(ms)} ms, ${smooth(opening)}`, { text, isMet });
  };
  await open(`open a timeline with ${stored} events`, "timeline", ".event");
  await scrollThrough(page, 300);
  const scrolling = await smoothness(page);
  report("scroll through it in 300 frames", smooth(scrolling), noLongTask(scrolling));

  await open(`open the conversation with ${stored} events`, "conversation", ".reports summary");
  for (let n = 0; n < MORE_REPORTS; n += 1) {
    await api.heartbeat(lease, { progress: { done: stored + n } });
    await sleep(20);
  }
  const arriving = await smoothness(page);
  report(`it shows ${MORE_REPORTS} more reports in a second`, smooth(arriving), noLongTask(arriving));
}

await withBroker(async (url, token) => {
  const api = client(url, token);
  for (let n = 0; n < AGENTS; n += 1) {
    await api.agent(nameOf(n), { limits: { max_waiting: 100_000 } });
  }
  const browser = await chromium.launch({ executablePath: CHROMIUM ?? "", chromiumSandbox: false });
  const parts = values.only === "live" ? [liveView] : [liveView, oneDelegation, findView];
  for (const part of parts) {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    await signIn(context, token);
    // tsx wraps functions with a helper that a page does not have.
    await context.addInitScript("globalThis.__name = (one) => one;");
    await context.addInitScript(watchPage);
    const page = await context.newPage();
    page.setDefaultTimeout(NEVER_MS);
    await part(page, api, url);
    await context.close();
  }
  await browser.close();
});
console.log("| what | figure | aim |\n| --- | --- | --- |");
for (const [what, figure, aim] of rows) console.log(`| ${what} | ${figure} | ${verdict(aim)} |`);
if (rows.some(([, , { isMet }]) => !isMet)) process.exitCode = 1;
