/** Handlers that wait for parts of their work, with a real broker: parked, resumed, run again from the start. */
import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import {
  Agent,
  type AgentEvent,
  type AgentOptions,
  Delegator,
  type Handler,
  ParkedError,
  textOf,
  type WaitedFor,
} from "../../../src/index.ts";
import { as, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { losingAnswers } from "../lossy-fetch.ts";

const PATIENT = { timeoutSeconds: 50 };

async function setup() {
  const { url, clock, gateway } = await startBroker();
  const lead = await as(url, "agent:lead");
  const smith = await as(url, "agent:smith");
  await lead.agent("lead", { backoff: { initial_ms: 0 } });
  await smith.agent("smith");
  const { token } = await as(url, "caller:alice");
  const delegator = new Delegator({ url, token });
  const start = (agent: string, token: string, handler: Handler, options: Partial<AgentOptions> = {}) => {
    const events: AgentEvent[] = [];
    const running = new Agent(
      { url, token, agent, onEvent: (event) => events.push(event), ...options },
      handler,
    );
    running.run().catch(() => undefined);
    onTestFinished(() => running.stop(0));
    return { types: () => events.map(({ type }) => type) };
  };
  return {
    delegator,
    clock,
    gateway,
    leader: (handler: Handler, options: Partial<AgentOptions> = {}) =>
      start("lead", lead.token, handler, options),
    smith: (handler: Handler) => start("smith", smith.token, handler),
  };
}

const doneOf = ({ children }: WaitedFor): string[] =>
  children.map(({ delegation, state }) => (delegation?.reply ? textOf(delegation.reply) : String(state)));

test("the handler runs again with what its parts said, and holds no lease meanwhile", async () => {
  const { delegator, leader, smith } = await setup();
  const runs: (string | undefined)[] = [];
  const { types } = leader(async (work) => {
    runs.push(work.checkpoint?.step?.toString());
    const parts = [];
    for (const task of ["one", "two"]) parts.push(await work.delegate({ target: "smith", task }));
    try {
      const waited = await work.waitFor(parts, { checkpoint: { step: 1 } });
      expect(waited.outcome).toBe("ended");
      expect(waited.children.map(({ id }) => id)).toEqual(parts.map(({ id }) => id));
      return doneOf(waited).join(", ");
    } catch (error) {
      expect(error).toBeInstanceOf(ParkedError);
      throw error;
    }
  });
  const { id } = await delegator.delegate({ target: "lead", task: "all" });
  for await (const event of delegator.watch(id)) if (event.status === "awaiting") break;
  expect(await delegator.get(id)).toMatchObject({ state: "awaiting_children", lease: null });
  smith((work) => `did ${work.text}`);
  const { reply, attempt } = await delegator.wait(id, PATIENT);
  expect(reply && textOf(reply)).toBe("did one, did two");
  expect({ attempt, runs }).toEqual({ attempt: 1, runs: [undefined, "1"] });
  await until(() => types().at(-1) === "replied");
  expect(types()).toEqual(["leased", "parked", "leased", "replied"]);
});

test("a wait after a wait, any of them, and what has ended already", async () => {
  const { delegator, leader, smith } = await setup();
  smith((work) =>
    work.text === "bad" ? { state: "failed", error: { code: "no", message: "no" } } : work.text,
  );
  leader(async (work) => {
    const first = await work.delegate({ target: "smith", task: "first" });
    const [one] = doneOf(await work.waitFor([first.id]));
    const others = [];
    for (const task of ["bad", "good"])
      others.push(await work.delegate({ target: "smith", task: `${task}` }));
    const all = await work.waitFor(others);
    const again = await work.waitFor(others, { until: "any" });
    return [one, ...doneOf(all), ...again.children.map(({ state }) => state)].join(" ");
  });
  const { id } = await delegator.delegate({ target: "lead", task: "all" });
  const { reply } = await delegator.wait(id, PATIENT);
  expect(reply && textOf(reply)).toBe("first failed good failed completed");
});

test("a time limit is an outcome, and a further wait for the same parts waits again", async () => {
  const { delegator, leader, clock, gateway } = await setup();
  const outcomes: string[] = [];
  leader(async (work) => {
    const part = await work.delegate({ target: "smith", task: "slow" });
    const { outcome } = await work.waitFor([part], { timeLimitSeconds: 100 });
    outcomes.push(outcome);
    if (outcomes.length < 2) await work.waitFor([part], { timeLimitSeconds: 100 });
    return outcomes.join(" ");
  });
  const { id } = await delegator.delegate({ target: "lead", task: "all" });
  let waits = 0;
  for await (const event of delegator.watch(id)) {
    if (event.status !== "awaiting") continue;
    waits += 1;
    clock.offset_ms += 101_000;
    await until(async () => {
      await gateway.sweep.tick();
      return (await delegator.get(id)).state !== "awaiting_children";
    });
    if (waits === 2) break;
  }
  const { reply } = await delegator.wait(id, PATIENT);
  expect(reply && textOf(reply)).toBe("time_limit time_limit");
});

test("a lost answer parks it all the same; a wait for what is no part fails the call", async () => {
  const { delegator, leader, smith } = await setup();
  const fetch = losingAnswers((asked) => asked.endsWith("/await"));
  const { id: stranger } = await delegator.delegate({ target: "smith", task: "not a part" });
  const { types } = leader(
    async (work) => {
      const wrong = await work.waitFor([stranger]).catch((error: unknown) => error);
      const part = await work.delegate({ target: "smith", task: "one" });
      const [said] = doneOf(await work.waitFor([part]));
      return `${said}, ${wrong instanceof Error && "code" in wrong ? wrong.code : "none"}`;
    },
    { fetch },
  );
  const { id } = await delegator.delegate({ target: "lead", task: "all" });
  for await (const event of delegator.watch(id)) if (event.status === "awaiting") break;
  smith((work) => work.text);
  const { reply } = await delegator.wait(id, PATIENT);
  expect(reply && textOf(reply)).toBe("one, not_a_child");
  await until(() => types().at(-1) === "replied");
  expect(types()).toEqual(["leased", "parked", "leased", "replied"]);
  expect(fetch.lost).toHaveLength(1);
});

test("two waits with a time limit, one after the other, both end", async () => {
  const { delegator, leader, clock, gateway } = await setup();
  const runs: string[] = [];
  leader(async (work) => {
    const seen: string[] = [];
    for (const task of ["a", "b"]) {
      const part = await work.delegate({ target: "smith", task });
      runs.push(task);
      seen.push((await work.waitFor([part], { timeLimitSeconds: 100 })).outcome);
    }
    return seen.join(" ");
  });
  const { id } = await delegator.delegate({ target: "lead", task: "all" });
  for await (const event of delegator.watch(id)) {
    if (event.status !== "awaiting") continue;
    clock.offset_ms += 101_000;
    await until(async () => {
      await gateway.sweep.tick();
      return (await delegator.get(id)).state !== "awaiting_children";
    });
  }
  const { reply } = await delegator.wait(id, PATIENT);
  expect(reply && textOf(reply)).toBe("time_limit time_limit");
  expect(runs).toEqual(["a", "a", "b", "a", "b"]);
});

test("with holdSeconds the handler goes on in the same run if enough parts end meanwhile", async () => {
  const { delegator, leader, smith } = await setup();
  let runs = 0;
  const { types } = leader(async (work) => {
    runs += 1;
    const parts = [];
    for (const task of ["one", "two", "never"]) parts.push(await work.delegate({ target: "smith", task }));
    const some = await work.waitFor(parts, { until: 2, holdSeconds: 60 });
    return doneOf(some).join(", ");
  });
  smith(async (work) => {
    if (work.text === "never") await once(work.signal, "abort");
    return `did ${work.text}`;
  });
  const { id } = await delegator.delegate({ target: "lead", task: "long" });
  const { reply } = await delegator.wait(id, PATIENT);
  expect(reply && textOf(reply)).toBe("did one, did two, working");
  expect(runs).toBe(1);
  await until(() => types().at(-1) === "replied");
  expect(types()).toEqual(["leased", "replied"]);
});

test("after holdSeconds it waits without a lease", async () => {
  const { delegator, leader } = await setup();
  leader(async (work) => {
    const part = await work.delegate({ target: "smith", task: "never" });
    await work.waitFor([part], { holdSeconds: 0.01 });
    return "ended";
  });
  const { id } = await delegator.delegate({ target: "lead", task: "short" });
  for await (const event of delegator.watch(id)) if (event.status === "awaiting") break;
  expect(await delegator.get(id)).toMatchObject({ state: "awaiting_children", lease: null });
});
