/** Matches of parked polls with new work: which poll is matched, and what it does with the result. Without Redis. */
import { setMaxListeners } from "node:events";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Fetched } from "../../../src/engine/leases/parked-poll.ts";
import { ParkedPolls } from "../../../src/engine/leases/parked-polls.ts";
import { until } from "../../support/until.ts";

const nothing = Promise.resolve(null);

/** Parked polls that have fetched nothing, with these terms or with none. */
async function parkedPolls(names: readonly (string | undefined)[]) {
  const polls = new ParkedPolls<string, Fetched<number>>({ onError: () => {} });
  /** The answers to the fetches of these polls. */
  const answers: ((fetched: Fetched<number>) => void)[] = [];
  const own = () => new Promise<Fetched<number>>((resolve) => answers.push(resolve));
  const leavers = new Map<string | undefined, AbortController>();
  const got = new Map<string | undefined, Promise<number | null>>();
  const park = (terms: string | undefined) => {
    const leaver = new AbortController();
    leavers.set(terms, leaver);
    const fetch = async (first?: Fetched<number>) => first ?? own();
    const asked = { signal: leaver.signal, fetch, ...(terms !== undefined && { terms }) };
    got.set(terms, polls.park("scout", asked));
  };
  for (const name of names) park(name);
  for (const _ of names) {
    await until(() => answers.length > 0);
    answers.shift()?.({ found: null });
  }
  await turns();
  expect(answers).toEqual([]);
  onTestFinished(async () => {
    for (const leaver of leavers.values()) leaver.abort();
    for (const answer of answers) answer({ found: null });
    await turns();
    expect(polls.countAll()).toBe(0);
    expect([...polls.agents()]).toEqual([]);
  });
  return { polls, answers, park, got, leave: (name: string) => leavers.get(name)?.abort() };
}

/** Runs everything that only waits for promises. */
async function turns(): Promise<void> {
  for (let n = 0; n < 5; n += 1) await new Promise((resolve) => setImmediate(resolve));
}

test("the poll that has waited longest is matched, and ends with what was taken for it, without a fetch of its own", async () => {
  const { polls, answers, got } = await parkedPolls(["first", "second"]);
  const matched = polls.match("scout");
  expect(matched?.terms).toBe("first");
  expect(polls.count("scout")).toBe(2);
  matched?.settle(Promise.resolve({ found: 1 }));
  expect(await got.get("first")).toBe(1);
  await turns();
  expect(polls.count("scout")).toBe(1);
  expect(answers).toEqual([]);
});

test("each poll has one match at a time", async () => {
  const { polls, got } = await parkedPolls(["first", "second"]);
  const matched = [polls.match("scout"), polls.match("scout")];
  expect(matched.map((one) => one?.terms)).toEqual(["first", "second"]);
  expect(polls.match("scout")).toBeNull();
  for (const [n, one] of matched.entries()) one?.settle(Promise.resolve({ found: n }));
  expect(await Promise.all(got.values())).toEqual([0, 1]);
});

test("there is no match if no poll waits, or if each of them is fetching", async () => {
  const { polls, answers, park } = await parkedPolls([]);
  expect(polls.match("scout")).toBeNull();
  park("first");
  expect(polls.match("scout")).toBeNull();
  park("second");
  await until(() => answers.length === 2);
  answers.shift()?.({ found: null });
  await turns();
  // The other poll is still fetching; this one found nothing.
  const matched = polls.match("scout");
  expect(matched?.terms).toBe("first");
  matched?.settle(nothing);
});

test("a poll is matched while another one drains the queue, and the drain continues", async () => {
  const { polls, answers, park, got } = await parkedPolls(["first", "second"]);
  polls.wake("scout");
  const matched = polls.match("scout");
  expect(matched?.terms).toBe("second");
  matched?.settle(Promise.resolve({ found: 1 }));
  expect(await got.get("second")).toBe(1);
  await until(() => answers.length === 1);
  answers.shift()?.({ found: 2 });
  expect(await got.get("first")).toBe(2);
  // The next poll fetches, because there may be more tickets.
  park("third");
  await until(() => answers.length === 1);
});

test("polls without terms are not matched", async () => {
  const { polls, got } = await parkedPolls([undefined, "second"]);
  const matched = polls.match("scout");
  expect(matched?.terms).toBe("second");
  expect(polls.match("scout")).toBeNull();
  matched?.settle(Promise.resolve({ found: 1 }));
  expect(await got.get("second")).toBe(1);
});

test("a poll whose match took nothing keeps waiting without a fetch, and uses a wake that came meanwhile", async () => {
  const { polls, answers, got } = await parkedPolls(["first"]);
  polls.match("scout")?.settle(nothing);
  await turns();
  expect([polls.count("scout"), answers.length]).toEqual([1, 0]);
  const matched = polls.match("scout");
  polls.wake("scout", false);
  await turns();
  expect(answers).toEqual([]);
  matched?.settle(nothing);
  await until(() => answers.length === 1);
  answers.shift()?.({ found: 7 });
  expect(await got.get("first")).toBe(7);
});

test("a matched poll that leaves ends when its match is settled, with the result or with nothing", async () => {
  for (const taken of [{ found: 3 }, null]) {
    const { polls, got, leave } = await parkedPolls(["first"]);
    const matched = polls.match("scout");
    leave("first");
    expect(polls.count("scout")).toBe(1);
    matched?.settle(Promise.resolve(taken));
    expect(await got.get("first")).toBe(taken?.found ?? null);
    await turns();
    expect([...polls.agents()]).toEqual([]);
  }
});

test("a match from before a drain does not end the drain", async () => {
  const { polls, answers, got } = await parkedPolls(["first", "second", "third"]);
  let settle = (_: Fetched<number>) => {};
  polls.match("scout")?.settle(
    new Promise((resolve) => {
      settle = resolve;
    }),
  );
  // One wake for three tickets that come after the fetch.
  polls.wake("scout");
  await until(() => answers.length === 1);
  settle({ found: null });
  await turns();
  for (let n = 1; n <= 3; n += 1) {
    await until(() => answers.length > 0, { what: `fetch ${n}` });
    answers.shift()?.({ found: n });
  }
  expect((await Promise.all(got.values())).sort()).toEqual([1, 2, 3]);
});

describe("an agent whose polls have all left", () => {
  const gone = async () => {
    const made = await parkedPolls(["first"]);
    made.leave("first");
    expect(await made.got.get("first")).toBeNull();
    expect(made.polls.agents()).toEqual([]);
    return made;
  };

  test("the next poll parks without a fetch while the queue is known to be empty, and can be matched", async () => {
    const { polls, answers, park, got } = await gone();
    park("second");
    await turns();
    expect(answers).toEqual([]);
    const matched = polls.match("scout");
    matched?.settle(Promise.resolve({ found: 1 }));
    expect(await got.get("second")).toBe(1);
    park("third");
    await turns();
    expect(answers).toEqual([]);
  });

  test.each([true, false])("the next poll fetches after a wake (drain: %s)", async (drain) => {
    const { polls, answers, park } = await gone();
    polls.wake("scout", drain);
    park("second");
    await until(() => answers.length === 1);
  });

  test("the next poll fetches after a gap in the wakes", async () => {
    const { polls, answers, park } = await gone();
    polls.wakeAll();
    park("second");
    await until(() => answers.length === 1);
  });
});

test("what is known about a queue without a poll is forgotten", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const { answers, leave, got, park } = await parkedPolls(["first"]);
  leave("first");
  await got.get("first");
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(60_000);
  expect(vi.getTimerCount()).toBe(0);
  park("second");
  await turns();
  expect(answers.length).toBe(1);
});

test("thousands of agents with parked polls are rechecked a few at a time, each about every 30 s", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const polls = new ParkedPolls({ onError: () => {} });
  const leaver = new AbortController();
  setMaxListeners(0, leaver.signal);
  const fetches = new Map<string, number>();
  let atOnce = 0;
  for (let n = 0; n < 3_000; n += 1) {
    const name = `agent-${n}`;
    const fetch = async () => {
      atOnce += 1;
      fetches.set(name, (fetches.get(name) ?? 0) + 1);
      return { found: null };
    };
    void polls.park(name, { signal: leaver.signal, fetch });
  }
  await turns();
  expect(atOnce).toBe(3_000);
  let most = 0;
  for (let ms = 0; ms < 120_000; ms += 50) {
    atOnce = 0;
    vi.advanceTimersByTime(50);
    await turns();
    most = Math.max(most, atOnce);
  }
  // 3 000 in 30 s are five in 50 ms.
  expect(most).toBeLessThan(40);
  const times = [...fetches.values()].map((all) => all - 1);
  expect([Math.min(...times), Math.max(...times)]).toEqual([
    expect.toSatisfy((n) => n >= 2),
    expect.toSatisfy((n) => n <= 6),
  ]);
  leaver.abort();
  expect(polls.countAll()).toBe(0);
});

test.each(["answers", "fails"])("a check reads the queues of many agents at once, and %s", async (how) => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const checked: string[] = [];
  const polls = new ParkedPolls({
    onError: () => {},
    findQueued: async (agents) => {
      checked.push(...agents);
      if (how === "fails") throw new Error("Command timed out");
      return agents.filter((agent) => agent === "agent-7");
    },
  });
  const leaver = new AbortController();
  setMaxListeners(0, leaver.signal);
  const fetched: string[] = [];
  const agents = Array.from({ length: 100 }, (_, n) => `agent-${n}`);
  for (const agent of agents) {
    const fetch = async () => {
      fetched.push(agent);
      return { found: null };
    };
    void polls.park(agent, { signal: leaver.signal, fetch });
  }
  await turns();
  expect(fetched.splice(0)).toEqual(agents);
  for (let ms = 0; ms < 45_000; ms += 100) {
    vi.advanceTimersByTime(100);
    await turns();
  }
  expect(new Set(checked)).toEqual(new Set(agents));
  expect(new Set(fetched)).toEqual(new Set(how === "fails" ? agents : ["agent-7"]));
  leaver.abort();
});
