/** A worker that fails fast, or cannot work, beside a healthy one: who gets the queue, and what everybody is told. */
import { describe, expect, onTestFinished, test } from "vitest";
import { Admin } from "../../../src/client/admin.ts";
import { Agent, type AgentInternals, type AgentOptions } from "../../../src/client/agent.ts";
import { WorkerUnavailableError } from "../../../src/client/unavailable.ts";
import type { AgentEvent, Handler } from "../../../src/client/work.ts";
import { onAbort } from "../../../src/util/timing.ts";
import { as, client, OPERATOR, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

const TASKS = 20;

/** A clock that a test moves; the pauses of a worker follow it. */
function clockOf() {
  let now = 0;
  const sleepers = new Set<() => void>();
  const sleep: AgentInternals["sleep"] = (ms, signal) =>
    new Promise((resolve, reject) => {
      const at = now + ms;
      const wake = () => now >= at && resolve();
      sleepers.add(wake);
      onAbort(signal, () => reject(signal.reason));
    });
  const advance = (ms: number) => {
    now += ms;
    for (const wake of [...sleepers]) wake();
  };
  return { times: { now: () => now, sleep, returnedForSeconds: 0.05 }, advance };
}

function worker(url: string, handler: Handler, options: Partial<AgentOptions> = {}) {
  const events: AgentEvent[] = [];
  const clock = clockOf();
  const agent = new Agent(
    {
      ...{ url, token: OPERATOR, agent: "scout", onEvent: (event: AgentEvent) => events.push(event) },
      ...{ onError: () => undefined, ...options },
    },
    handler,
    clock.times,
  );
  const running = agent.run();
  onTestFinished(async () => {
    await agent.stop();
    await running;
  });
  const count = (type: AgentEvent["type"]) => events.filter((event) => event.type === type).length;
  return { agent, events, count, advance: clock.advance };
}

async function withTasks(count = TASKS, spec: object = {}) {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout", { backoff: { initial_ms: 10, jitter: 0 }, ...spec });
  const answers = await Promise.all(Array.from({ length: count }, () => api.delegate("scout")));
  const ids: string[] = answers.map(({ body }) => body.id);
  const all = async () => (await Promise.all(ids.map((id) => api.get(id)))).map(({ body }) => body);
  const states = async () => (await all()).map(({ state }) => state);
  const ended = () =>
    until(async () => (await states()).every((one) => one === "completed" || one === "failed"));
  return { url, api, ids, all, states, ended };
}

describe("20 tasks beside a healthy worker all complete, if the other one", () => {
  test.each<[string, Handler, number]>([
    ["throws", () => Promise.reject(new Error("no space left on device")), 3],
    [
      "fails for another attempt",
      () => ({ state: "failed", error: { code: "busy", message: "", retryable: true } }),
      3,
    ],
    ["cannot work", () => Promise.reject(new WorkerUnavailableError("not signed in")), 1],
    ["gets a provider's refusal", () => Promise.reject(refusal()), 1],
  ])("%s", async (_what, broken, leases) => {
    const { url, states, ended } = await withTasks();
    const bad = worker(url, broken, { workerId: "bad" });
    await until(() => bad.count("paused") === 1, { what: "a pause" });
    expect(bad.count("leased")).toBe(leases);
    worker(url, () => "done", { workerId: "good" });
    // One probe.
    bad.advance(5_000);
    await until(
      async () => bad.count("paused") === 2 || (await states()).every((one) => one === "completed"),
    );
    await ended();
    expect((await states()).filter((one) => one === "completed")).toHaveLength(TASKS);
    expect(bad.count("leased") - leases).toBeLessThanOrEqual(1);
  });

  const refusal = () => {
    class AnthropicError extends Error {}
    class RateLimitError extends AnthropicError {}
    return Object.assign(new RateLimitError("slow down"), {
      status: 429,
      headers: { "retry-after": "3600" },
    });
  };
});

test("the time that a provider names is the pause; the work returns without an attempt, and everybody is told", async () => {
  const { url, api, ids, all } = await withTasks(1);
  const bad = worker(
    url,
    () => Promise.reject(new WorkerUnavailableError("limit reached", { retryAfterSeconds: 3600 })),
    {
      workerId: "bad",
    },
  );
  await until(() => bad.count("released") === 1);
  const [paused] = bad.events.filter((event) => event.type === "paused");
  expect(paused).toMatchObject({ reason: "limit reached" });
  expect(paused?.type === "paused" && paused.delayMs >= 3_600_000).toBe(true);
  expect((await all())[0]).toMatchObject({ state: "submitted", attempt: 1 });
  const log = (await api.events(ids[0] ?? "")).body.events;
  expect(log.find((event: { status?: string }) => event.status === "released").reason).toBe("limit reached");

  const admin = new Admin({ url, token: OPERATOR });
  const shown = await until(async () => (await admin.getAgent("scout")).presence.paused);
  expect(shown).toMatchObject({ workers: 1, reason: "limit reached" });
  expect(Date.parse(shown.until) - Date.now()).toBeGreaterThan(3_500_000);
  const [listed] = await admin.listAgents();
  expect(listed?.presence.paused).toEqual(shown);
  const [row] = await admin.listWorkers("scout");
  expect(row).toMatchObject({ id: "bad", paused: { until: shown.until, reason: "limit reached" } });
  // The names of workers are not for everybody.
  const alice = await as(url, "caller:alice");
  expect(JSON.stringify((await alice.call("GET", "/v1/agents/scout")).body)).not.toContain("bad");

  bad.advance(3_700_000);
  await until(() => bad.count("leased") === 2, { what: "a try after the pause" });
});

test("with several slots, the first that finds out pauses all, and one of them tries", async () => {
  const { url } = await withTasks();
  const bad = worker(url, () => Promise.reject(new WorkerUnavailableError("offline")), { concurrency: 5 });
  await until(() => bad.count("released") >= 1 && bad.count("released") === bad.count("leased"));
  const first = bad.count("leased");
  expect(first).toBeLessThanOrEqual(5);
  expect(bad.count("paused")).toBe(1);
  bad.advance(5_000);
  await until(() => bad.count("paused") === 2);
  await until(() => bad.count("released") === first + 1);
  expect(bad.count("leased")).toBe(first + 1);
});

describe("a healthy worker", () => {
  test("replies to a failure at once if no other work waits", async () => {
    const { url, all, ended } = await withTasks(1);
    const good = worker(url, () => Promise.reject(new Error("a bad task")));
    await ended();
    expect((await all())[0]).toMatchObject({
      state: "failed",
      attempt: 1,
      error: { message: "The agent failed: Error." },
    });
    expect(good.count("paused")).toBe(0);
  });

  test("takes the next task before it replies to a failure, and a success makes the failure final", async () => {
    const { url, ids, all, ended } = await withTasks(4);
    const bad = new Set(ids.slice(0, 2));
    const good = worker(url, ({ delegation }) => {
      if (bad.has(delegation.id)) throw new Error("a bad task");
      return "done";
    });
    await ended();
    const found = (await all()).map(({ state, attempt }) => [state, attempt]);
    expect(found).toEqual([
      ["failed", 1],
      ["failed", 1],
      ["completed", 1],
      ["completed", 1],
    ]);
    expect([good.count("leased"), good.count("paused")]).toEqual([4, 0]);
  });

  test("with three bad tasks in a row pauses once, and fails them in the end", async () => {
    const { url, all, ended } = await withTasks(3, { limits: { max_attempts: 2 } });
    const good = worker(url, () => Promise.reject(new Error("a bad task")));
    const ticking = setInterval(() => good.advance(1_000), 5);
    onTestFinished(() => clearInterval(ticking));
    await ended();
    for (const one of await all())
      expect(one).toMatchObject({ state: "failed", error: { code: "agent_error" } });
  });

  test("keeps the word of a handler that wants no other attempt", async () => {
    const { url, all, ended } = await withTasks(5);
    const error = { code: "refused", message: "no", retryable: false };
    const bad = worker(url, () => ({ state: "failed", error }));
    await until(() => bad.count("paused") === 1);
    // The pause is told while the last reply is on its way.
    await until(async () => (await all()).filter(({ state }) => state === "failed").length === 3);
    const ticking = setInterval(() => bad.advance(1_000), 5);
    onTestFinished(() => clearInterval(ticking));
    await ended();
    expect((await all()).every(({ attempt }) => attempt === 1)).toBe(true);
  });

  test("that stops while a reply waits sends it", async () => {
    const { url, ids, api } = await withTasks(2);
    let begun = 0;
    const good = worker(url, ({ signal }) => {
      begun += 1;
      if (begun === 1) throw new Error("a bad task");
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    });
    await until(() => begun === 2);
    await good.agent.stop();
    const found = await Promise.all(ids.map((id) => api.get(id)));
    expect(found.map(({ body }) => body.state).sort()).toEqual(["failed", "submitted"]);
  });
});

test("a broker that does not know `worker` gets the reply and the release without it", async () => {
  const { url, all } = await withTasks(1);
  const { broker_id } = (await client(url).call("GET", "/v1/status")).body;
  const refusing: typeof fetch = async (target, init) => {
    const body = String(init?.body ?? "");
    if (body.includes('"paused_seconds"'))
      return Response.json(
        {
          type: "x",
          title: "x",
          status: 400,
          detail: "unknown",
          code: "invalid_request",
          category: "PROTOCOL",
          retryable: false,
          recovery: "x",
          broker_id,
        },
        { status: 400, headers: { "content-type": "application/problem+json" } },
      );
    return fetch(target, init);
  };
  const bad = worker(url, () => Promise.reject(new WorkerUnavailableError("offline")), { fetch: refusing });
  await until(() => bad.count("released") === 1);
  expect((await all())[0]).toMatchObject({ state: "submitted", attempt: 1 });
});
