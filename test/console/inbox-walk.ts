/**
 * A random walk around a pointer that rests: questions arrive, expire, are answered by others, change their group and are
 * filtered, the window is resized, and the connection drops. Every answer of the page must be to a question whose text was
 * under the pointer, with that button, for half a second before the press.
 */
import * as fc from "fast-check";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { pass } from "../support/browser.ts";
import { until } from "../support/until.ts";
import { Asking, openWatched, type Press, pressesOf, send, settled, WIDE } from "./resting.ts";

/** `WALK_SEED` walks another way. */
export const SEED = Number(process.env.WALK_SEED ?? 20261128);

const AGENTS = ["ann", "bob"];
const WHATS = ["same", "other"];
/** The list with one question beside it, and below a width cards; or the narrow column of cards. */
const VIEWS = {
  list: {
    hash: "#/needs",
    sizes: [
      { width: 1280, height: 900 },
      { width: 1024, height: 700 },
      { width: 760, height: 900 },
    ],
  },
  column: {
    hash: "#/live",
    sizes: [
      { width: 1280, height: 900 },
      { width: 1100, height: 900 },
      { width: 1280, height: 700 },
    ],
  },
} as const;
type View = keyof typeof VIEWS;

/** Without the grain of the witness. */
const SEEN_MS = 450;

const n = fc.nat(20);
const of = <Name extends string>(name: Name) => fc.constant(name);
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: of("ask"), n, agent: n, what: n }) },
  { weight: 2, arbitrary: fc.record({ do: of("answer"), n }) },
  { weight: 1, arbitrary: fc.record({ do: of("cancel"), n }) },
  { weight: 1, arbitrary: fc.record({ do: of("expire") }) },
  { weight: 2, arbitrary: fc.record({ do: of("regroup"), n, what: n }) },
  { weight: 1, arbitrary: fc.record({ do: of("filter"), agent: n }) },
  { weight: 2, arbitrary: fc.record({ do: of("resize"), n }) },
  { weight: 1, arbitrary: fc.record({ do: of("drop"), steps: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 4, arbitrary: fc.record({ do: of("rest"), n }) },
  // At once, or after the reader has looked. Then it is sent, and the mouse rests elsewhere; or it can be taken back.
  {
    weight: 8,
    arbitrary: fc.record({
      do: of("press"),
      afterMs: fc.constantFrom(0, 0, 200, 700),
      isSent: fc.constantFrom(true, true, false),
      n,
    }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

interface World {
  readonly view: View;
  readonly page: Page;
  readonly asking: Asking;
  /** For so many steps, the page has no connection. */
  offline: number;
}

const BUTTONS = ".needs :is(button[name=approve], button[name=deny], .equal .buttons button):visible";
const ROWS = ".needs .ask-row:visible";
const OPEN_ROWS = ".needs .ask-row:not(.over):visible";

async function take(world: World, one: Step): Promise<void> {
  const { page, asking, view } = world;
  const { sizes } = VIEWS[view];
  const some = "n" in one ? asking.open[one.n % Math.max(1, asking.open.length)] : undefined;
  if (one.do === "ask") {
    // Every fifth expires soon.
    const seconds = one.n % 5 === 0 ? 100 : 20_000 + one.n * 100;
    const what = WHATS[one.what % 4];
    await asking.ask({ seconds, agent: AGENTS[one.agent % 2] ?? "ann", ...(what && { what }) });
  } else if (one.do === "answer" && some) await asking.answer(some);
  else if (one.do === "cancel" && some) await asking.cancel(some);
  else if (one.do === "regroup" && some) await asking.regroup(some, WHATS[one.what % 2] ?? "same");
  else if (one.do === "expire") await asking.pass(120);
  else if (one.do === "filter" && view === "list") await filter(page, AGENTS[one.agent % 4]);
  else if (one.do === "resize") await page.setViewportSize(sizes[one.n % sizes.length] ?? sizes[0]);
  else if (one.do === "drop") {
    world.offline = one.steps;
    await page.context().setOffline(true);
  } else if (one.do === "rest") await rest(page, one.n);
  else if (one.do === "press") {
    if (one.afterMs > 0) await pass(page, one.afterMs / 1000);
    await page.mouse.down();
    await page.mouse.up();
    if (!one.isSent) return;
    await pass(page, 5);
    await rest(page, one.n);
  }
}

/** The connection comes back after its time. */
async function reconnect(world: World): Promise<void> {
  world.offline -= 1;
  if (world.offline === 0) await world.page.context().setOffline(false);
}

const filter = (page: Page, agent: string | undefined) =>
  page.evaluate((name) => {
    location.hash = name === undefined ? "#/needs" : `#/needs?agent=${name}`;
  }, agent);

/** The mouse rests on what answers an open question, or on a row. If all that is shown is over, the reader chooses another. */
async function rest(page: Page, n: number): Promise<void> {
  let points = await pointsOf(page, n % 5 === 0 ? ROWS : BUTTONS);
  const [other] = points.length === 0 ? await pointsOf(page, OPEN_ROWS) : [];
  if (other) {
    await page.mouse.click(...other);
    await pass(page, 0.6);
    points = await pointsOf(page, BUTTONS);
  }
  await page.mouse.move(...(points[n % Math.max(1, points.length)] ?? [5, 5]));
  await pass(page, 0.6);
}

const pointsOf = (page: Page, controls: string) =>
  page.locator(controls).evaluateAll((all) =>
    all
      .filter((one) => !one.matches(":disabled") && one.closest("[inert]") === null)
      .map((one) => one.getBoundingClientRect())
      .filter(({ top, bottom }) => top > 0 && bottom < innerHeight)
      .map(({ left, top, width, height }) => [left + width / 2, top + height / 2] as const),
  );

/** The page has all answers that it will get. */
async function end(world: World): Promise<void> {
  const { page, asking } = world;
  await page.context().setOffline(false);
  await until(async () => {
    await pass(page, 2);
    return (await page.locator(".reconnecting").count()) === 0;
  });
  await send(page);
  // The broker's record, not what the page takes for it.
  await asking.look();
  await settled(page, asking);
}

export interface Counts {
  steps: number;
  presses: number;
  answers: number;
}

/** Walks `runs` times so many steps, and fails at the first answer that was meant for another question. */
export async function walk(view: View, runs: number, steps: number): Promise<Counts> {
  const counts = { steps: 0, presses: 0, answers: 0 };
  const property = fc.asyncProperty(fc.array(step, { minLength: steps, maxLength: steps }), async (all) => {
    const asking = await Asking.start(AGENTS);
    for (const agent of AGENTS)
      for (const what of ["same", "same", undefined]) await asking.ask({ agent, ...(what && { what }) });
    const page = await openWatched(asking.url, VIEWS[view].hash, WIDE);
    const world = { view, page, asking, offline: 0 };
    await rest(page, 0);
    for (const one of all) {
      await take(world, one);
      await reconnect(world);
    }
    await end(world);
    const presses = await pressesOf(page);
    const given = await asking.givenBy("operator");
    const unmeant = given.filter(
      ({ token, decision }) => !presses.some((press) => isMeant(press, token, decision)),
    );
    expect(unmeant).toEqual([]);
    console.log(
      JSON.stringify(presses.map((p) => `${p.control} ${p.tokens.join("+")} ${Math.round(p.forMs)}`)),
      JSON.stringify(given),
    );
    counts.steps += all.length;
    counts.presses += presses.length;
    counts.answers += given.length;
    await page.context().close();
  });
  await fc.assert(property, { seed: SEED, numRuns: runs, endOnFailure: true });
  return counts;
}

const isMeant = ({ control, tokens, forMs }: Press, token: string, decision: string): boolean =>
  tokens.includes(token) && forMs >= SEEN_MS && control.toLowerCase() === decision;
