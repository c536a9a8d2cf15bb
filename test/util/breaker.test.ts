import { describe, expect, test } from "vitest";
import { Breaker, FAST_MS, type Pause, type Permit } from "../../src/util/breaker.ts";

/** A breaker with a clock that only {@link advance} moves. */
function breakerAt() {
  let now = 0;
  const sleepers = new Set<() => void>();
  const pauses: Pause[] = [];
  let resumed = 0;
  const breaker = new Breaker({
    now: () => now,
    random: () => 0,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        const at = now + ms;
        const wake = () => {
          if (now < at) return;
          sleepers.delete(wake);
          resolve();
        };
        sleepers.add(wake);
        signal.addEventListener("abort", () => {
          sleepers.delete(wake);
          reject(signal.reason);
        });
      }),
    onPause: (pause) => pauses.push(pause),
    onResume: () => {
      resumed += 1;
    },
  });
  const stopping = new AbortController();
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  return {
    breaker,
    pauses,
    stopping,
    settle,
    sleeping: () => sleepers.size,
    resumed: () => resumed,
    enter: () => breaker.enter(stopping.signal),
    async advance(ms: number) {
      now += ms;
      for (const wake of [...sleepers]) wake();
      await settle();
    },
    async begin(): Promise<Permit> {
      const permit = await breaker.enter(stopping.signal);
      breaker.began(permit);
      return permit;
    },
    async run(end: "worked" | "failed" | "unable", id: string, retryAfterMs?: number) {
      const permit = await this.begin();
      const ended = { kind: end, id, code: "broken", reason: "no credit", retryAfterMs };
      return breaker.end(permit, ended);
    },
  };
}

describe("fast failures", () => {
  test("of three delegations in a row begin a pause, and then one try is allowed", async () => {
    const at = breakerAt();
    expect([await at.run("failed", "a"), await at.run("failed", "b")]).toEqual([undefined, undefined]);
    const pause = await at.run("failed", "c");
    expect(pause).toEqual({ ms: 5_000, reason: "3 delegations in a row failed within 10 s (broken)" });
    const entered: Permit[] = [];
    for (let slot = 0; slot < 3; slot += 1) void at.enter().then((permit) => entered.push(permit));
    await at.advance(4_999);
    expect(entered).toHaveLength(0);
    await at.advance(1);
    expect(entered).toHaveLength(1);
    const [probe] = entered;
    if (probe) at.breaker.end(probe, { kind: "worked" });
    await at.settle();
    expect([entered.length, at.breaker.isOpen, at.resumed()]).toEqual([3, false, 1]);
  });

  test("after a pause, each try that fails makes the next pause longer, up to five minutes", async () => {
    const at = breakerAt();
    for (const id of ["a", "b", "c"]) await at.run("failed", id);
    for (let n = 0; n < 8; n += 1) {
      await at.advance(at.pauses.at(-1)?.ms ?? 0);
      await at.run("failed", `probe ${n}`);
    }
    const seconds = at.pauses.map(({ ms }) => ms / 1000);
    expect(seconds).toEqual([5, 10, 20, 40, 80, 160, 300, 300, 300]);
    await at.advance(300_000);
    await at.run("worked", "x");
    for (const id of ["d", "e", "f"]) await at.run("failed", id);
    expect(at.pauses.at(-1)?.ms).toBe(5_000);
  });

  test.each([
    ["a success between them", async (at: ReturnType<typeof breakerAt>) => at.run("worked", "w")],
    [
      "a slow failure between them",
      async (at: ReturnType<typeof breakerAt>) => {
        const permit = await at.begin();
        await at.advance(FAST_MS);
        return at.breaker.end(permit, { kind: "failed", id: "slow", code: "broken" });
      },
    ],
  ])("are no row with %s", async (_what, between) => {
    const at = breakerAt();
    for (const id of ["a", "b"]) await at.run("failed", id);
    await between(at);
    for (const id of ["c", "d"]) await at.run("failed", id);
    expect(at.pauses).toEqual([]);
  });

  test("of the same delegation count once, and a try with it makes no pause longer", async () => {
    const at = breakerAt();
    for (let n = 0; n < 9; n += 1) await at.run("failed", "bad");
    expect(at.pauses).toEqual([]);
    for (const id of ["b", "c"]) await at.run("failed", id);
    for (let n = 0; n < 3; n += 1) {
      await at.advance(5_000);
      await at.run("failed", "bad");
    }
    expect(at.pauses.map(({ ms }) => ms)).toEqual([5_000, 5_000, 5_000, 5_000]);
  });

  test("of work that began before the pause say nothing about the time after it", async () => {
    const at = breakerAt();
    const late = [await at.begin(), await at.begin()];
    for (const id of ["a", "b", "c"]) await at.run("failed", id);
    await at.advance(5_000);
    const probe = await at.begin();
    const [failed, worked] = late;
    if (failed) at.breaker.end(failed, { kind: "failed", id: "d", code: "broken" });
    if (worked) at.breaker.end(worked, { kind: "worked" });
    expect([at.pauses.length, at.breaker.isOpen]).toEqual([1, true]);
    at.breaker.end(probe, { kind: "worked" });
    expect(at.breaker.isOpen).toBe(false);
  });
});

describe("a worker that cannot work", () => {
  test("pauses at once, and as long as the provider says", async () => {
    const at = breakerAt();
    expect(await at.run("unable", "a")).toEqual({ ms: 5_000, reason: "no credit" });
    await at.advance(5_000);
    expect((await at.run("unable", "b", 3_600_000))?.ms).toBe(3_600_000);
    await at.advance(3_600_000);
    expect((await at.run("unable", "c", 1e12))?.ms).toBe(86_400_000);
  });

  test("pauses longer for the same delegation, up to 40 s", async () => {
    const at = breakerAt();
    for (let n = 0; n < 6; n += 1) {
      await at.run("unable", "a");
      await at.advance(40_000);
    }
    expect(at.pauses.map(({ ms }) => ms)).toEqual([5_000, 10_000, 20_000, 40_000, 40_000, 40_000]);
  });

  test("pauses once, however many of its slots find out", async () => {
    const at = breakerAt();
    const slots = await Promise.all([at.begin(), at.begin(), at.begin()]);
    const ends = slots.map((permit, n) =>
      at.breaker.end(permit, { kind: "unable", id: `d${n}`, reason: "no credit" }),
    );
    expect(ends.map((pause) => pause?.ms)).toEqual([5_000, 5_000, 5_000]);
    expect(at.pauses).toHaveLength(1);
  });
});

test("a pause ends the polls that wait; work that began continues", async () => {
  const at = breakerAt();
  const polls = await at.enter();
  const works = await at.begin();
  await at.run("unable", "a");
  expect([polls.signal.aborted, works.signal.aborted]).toEqual([true, false]);
});

test("a try that runs longer than a fast failure lets the other slots work", async () => {
  const at = breakerAt();
  await at.run("unable", "a");
  await at.advance(5_000);
  await at.begin();
  let others = 0;
  for (let slot = 0; slot < 2; slot += 1)
    void at.enter().then(() => {
      others += 1;
    });
  await at.advance(FAST_MS - 1);
  expect(others).toBe(0);
  await at.advance(1);
  expect([others, at.breaker.isOpen]).toEqual([2, false]);
});

test("a try without work is left to the next caller, and a stop ends the wait", async () => {
  const at = breakerAt();
  await at.run("unable", "a");
  await at.advance(5_000);
  const first = await at.enter();
  const second = at.enter();
  at.breaker.leave(first);
  const probe = await second;
  const waiting = at.enter();
  at.stopping.abort(new Error("stop"));
  await expect(waiting).rejects.toThrow("stop");
  at.breaker.leave(probe);
  await expect(at.enter()).rejects.toThrow("stop");
});

describe("whether fast failures are the worker's own", () => {
  const undecided = new Promise<never>(() => undefined);
  const suspected = async () => {
    const at = breakerAt();
    await at.run("failed", "a");
    return { at, verdict: (next: Promise<unknown>) => at.breaker.isOwnFault(next, at.stopping.signal) };
  };

  test("is known after a pause, a success, the end of the next run, or when that runs long", async () => {
    const broken = await suspected();
    const ours = broken.verdict(undecided);
    for (const id of ["b", "c"]) await broken.at.run("failed", id);
    expect(await ours).toBe(true);

    const healthy = await suspected();
    const theirs = healthy.verdict(undecided);
    await healthy.at.run("worked", "b");
    expect(await theirs).toBe(false);

    const ended = await suspected();
    expect(await ended.verdict(Promise.reject(new Error("lost")))).toBe(false);

    const long = await suspected();
    const late = long.verdict(undecided);
    await long.at.advance(FAST_MS);
    expect(await late).toBe(false);

    const stopped = await suspected();
    const last = stopped.verdict(undecided);
    stopped.at.stopping.abort(new Error("stop"));
    expect(await last).toBe(false);
    for (const { at } of [broken, healthy, ended, long, stopped]) {
      await at.settle();
      expect(at.sleeping()).toBe(0);
    }
  });
});
