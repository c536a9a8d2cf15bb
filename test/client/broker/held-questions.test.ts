/** Handlers that wait for an answer with their lease, and answers that are used once; with a real broker. */
import { expect, onTestFinished, test } from "vitest";
import {
  Agent,
  type AgentEvent,
  type AgentOptions,
  Delegator,
  type Handler,
  textOf,
} from "../../../src/index.ts";
import { as, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { losingAnswers } from "../lossy-fetch.ts";

const PATIENT = { timeoutSeconds: 50 };

async function setup() {
  const { url } = await startBroker();
  const token = await as(url, "agent:scout");
  await token.agent("scout", { backoff: { initial_ms: 0 } });
  const alice = await as(url, "caller:alice");
  const delegator = new Delegator({ url, token: alice.token });
  const { id } = await delegator.delegate({ target: "scout", task: "x" });
  const scout = (handler: Handler, options: Partial<AgentOptions> = {}) => {
    const events: AgentEvent[] = [];
    const onEvent = (event: AgentEvent) => events.push(event);
    const agent = new Agent({ url, token: token.token, agent: "scout", onEvent, ...options }, handler);
    agent.run().catch(() => undefined);
    onTestFinished(() => agent.stop(0));
    return { agent, types: () => events.map(({ type }) => type) };
  };
  /** Waits for the question, and whether somebody holds it. */
  const asked = async () => {
    const { interrupt, lease } = await delegator.wait(id, PATIENT);
    if (!interrupt) throw new Error("it asks nothing");
    return {
      interrupt,
      isHeld: lease !== null,
      answer: (text: string) => delegator.answer(id, interrupt.id, { text }),
    };
  };
  const end = async () => {
    const { state, reply } = await delegator.wait(id, PATIENT);
    return [state, reply && textOf(reply)];
  };
  return { id, delegator, scout, asked, end };
}

test("an answer within the time lets the handler go on, with its lease", async () => {
  const { id, delegator, scout, asked, end } = await setup();
  let runs = 0;
  const { types } = scout(async (work) => {
    runs += 1;
    const first = await work.ask("Which?", { holdSeconds: 60 });
    const [second] = await work.askAll(["And then?"], { holdSeconds: 60 });
    return `${first.text} ${second.text} ${runs}`;
  });
  for (const text of ["a", "b"]) {
    const question = await asked();
    expect(question.isHeld).toBe(true);
    await question.answer(text);
  }
  expect(await end()).toEqual(["completed", "a b 1"]);
  expect((await delegator.get(id)).attempt).toBe(1);
  await until(() => types().length === 2);
  expect(types()).toEqual(["leased", "replied"]);
});

test("after the time it is parked, and the answer starts the handler again", async () => {
  const { scout, asked, end, delegator, id } = await setup();
  let runs = 0;
  const { types } = scout(async (work) => {
    runs += 1;
    return `${(await work.ask("Which?", { holdSeconds: 0.05 })).text} ${runs}`;
  });
  await until(() => types().includes("parked"), { what: "the end of the run" });
  const question = await asked();
  expect(question.isHeld).toBe(false);
  await question.answer("a");
  expect(await end()).toEqual(["completed", "a 2"]);
  expect((await delegator.get(id)).attempt).toBe(1);
});

test("a worker that stops leaves the question open", async () => {
  const { scout, asked, end } = await setup();
  const handler: Handler = async (work) => (await work.ask("Which?", { holdSeconds: 60 })).text;
  const one = scout(handler);
  expect((await asked()).isHeld).toBe(true);
  await one.agent.stop();
  const question = await asked();
  expect(question.isHeld).toBe(false);
  await question.answer("a");
  scout(handler);
  expect(await end()).toEqual(["completed", "a"]);
});

test("questions of one handler are held one after the other, and lost answers change nothing", async () => {
  const { scout, asked, end } = await setup();
  const fetch = losingAnswers((call) => call.endsWith("/interrupt") || call.endsWith("/use"), 3);
  scout(
    async (work) => {
      const both = await Promise.all([
        work.ask("One?", { holdSeconds: 60 }),
        work.ask("Two?", { holdSeconds: 60 }),
      ]);
      const used = [];
      for (const answer of [...both, ...both]) used.push(await work.use(answer));
      return [...both.map(({ text }) => text), ...used].join(" ");
    },
    { fetch },
  );
  await (await asked()).answer("a");
  await (await asked()).answer("b");
  expect(await end()).toEqual(["completed", "a b now now before before"]);
  expect(fetch.lost.length).toBe(3);
});

test("the answer that one run used is gone for the next", async () => {
  const { scout, asked, end } = await setup();
  let runs = 0;
  const seen: string[] = [];
  scout(async (work) => {
    runs += 1;
    const answer = await work.ask("Pay?");
    seen.push(await work.use(answer));
    return runs === 2
      ? { state: "failed", error: { code: "broken", message: "no", retryable: true } }
      : answer.text;
  });
  await (await asked()).answer("yes");
  expect(await end()).toEqual(["completed", "yes"]);
  expect(seen).toEqual(["now", "before"]);
});

test("a plain question waits for the held one, and an answer may be used meanwhile", async () => {
  const { scout, asked, end } = await setup();
  scout(async (work) => {
    const first = await work.ask("One?", { holdSeconds: 60 });
    const second = work.ask("Two?", { holdSeconds: 60 });
    const third = work.ask("Three?");
    const used = await work.use(first);
    return [first.text, used, (await second).text, (await third).text].join(" ");
  });
  for (const text of ["a", "b", "c"]) await (await asked()).answer(text);
  expect(await end()).toEqual(["completed", "a before b c"]);
});

test("a handler that ends does not hold its question any longer", async () => {
  const { scout, asked, end } = await setup();
  let runs = 0;
  scout(async (work) => {
    runs += 1;
    if (runs > 1) return (await work.ask("One?")).text;
    work.ask("One?", { holdSeconds: 60 }).catch(() => undefined);
    await until(() => work.signal.aborted || runs === 1);
    return "too early";
  });
  await until(async () => !(await asked()).isHeld, { what: "the end of the wait" });
  await (await asked()).answer("a");
  expect(await end()).toEqual(["completed", "a"]);
});
