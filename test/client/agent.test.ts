/** The agent's handling of leases: confirm, heartbeat, reply, loss, stop, outage. */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { Agent, type AgentOptions } from "../../src/client/agent.ts";
import { HandlerTimeoutError } from "../../src/client/handler-limits.ts";
import type { AgentEvent, Handler, Work } from "../../src/client/work.ts";
import { until } from "../support/until.ts";
import { type Answer, completedWith, ID, LEASE_ID, leaseLike, type Seen, stubBroker } from "./stub-broker.ts";

const quiet = () => undefined;

const HEARTBEAT = { expires_at: "2026-01-01T00:02:00.000Z", messages: [], state: "working" };

/** Grants one lease to the first poll and none after it; a test overrides the routes that it is about. */
async function brokerWith(
  routes: Partial<
    Record<
      "leases" | "heartbeat" | "artifacts" | "reply" | "release",
      (answer: Answer, request: Seen) => void
    >
  >,
  lease = leaseLike(),
) {
  let given = false;
  const stub = await stubBroker((request, answer) => {
    const verb = request.path.split("/").at(-1);
    const route = Object.entries(routes).find(([name]) => name === verb)?.[1];
    if (route) return route(answer, request);
    if (verb === "leases") {
      if (!given) answer.json({ leases: [lease] });
      given = true;
    } else if (verb === "heartbeat") {
      if (request.body.wait_seconds === undefined) answer.json(HEARTBEAT);
    } else if (verb === "reply") answer.json({ outcome: "matched", delegation: completedWith("") });
    else answer.json({});
  });
  return stub;
}

function agentAt(url: string, handler: Handler, options: Partial<AgentOptions> = {}) {
  const events: AgentEvent[] = [];
  const agent = new Agent(
    { url, agent: "scout", onEvent: (event) => events.push(event), ...options },
    handler,
  );
  onTestFinished(() => agent.stop());
  return { agent, events, types: () => events.map(({ type }) => type) };
}

describe("one delegation", () => {
  test("is confirmed at once, handled, and replied to with `next`", async () => {
    const stub = await brokerWith({});
    const { agent, events } = agentAt(stub.url, (work) => `${work.text.split(" ").length} words`, {
      workerId: "w1",
      leaseSeconds: 30,
    });
    const running = agent.run();
    await until(() => events.some(({ type }) => type === "replied"), { what: "a reply" });
    await agent.stop();
    await running;
    const next = { confirm_within_seconds: 5, lease_seconds: 30, worker_id: "w1" };
    expect(stub.seen.slice(0, 3).map(({ path, body }) => [path, body])).toEqual([
      ["/v1/agents/scout/leases", { wait_seconds: 0, ...next }],
      [`/v1/leases/${LEASE_ID}/heartbeat`, {}],
      [
        `/v1/leases/${LEASE_ID}/reply`,
        { state: "completed", text: "3 words", next: { wait_seconds: 0, ...next } },
      ],
    ]);
    expect(events.map(({ type }) => type)).toEqual(["leased", "replied"]);
  });

  test("the next one arrives with the answer to the reply, without a poll", async () => {
    let replies = 0;
    const stub = await brokerWith({
      reply: (answer) => {
        replies += 1;
        const leases = replies === 1 ? [leaseLike()] : [];
        answer.json({ outcome: "matched", delegation: completedWith(""), leases });
      },
    });
    const { agent } = agentAt(stub.url, () => undefined);
    void agent.run();
    await until(() => stub.to("/reply").length === 2, { what: "the second reply" });
    expect(stub.to("/leases").length).toBeLessThanOrEqual(2);
    expect(stub.to("/heartbeat").filter(({ body }) => body.wait_seconds === undefined)).toHaveLength(2);
  });

  test("that cannot be confirmed is never started", async () => {
    const stub = await brokerWith({
      heartbeat: (answer) =>
        answer.problem(409, "lease_lost", "PROTOCOL", { details: { reason: "released" } }),
    });
    let started = 0;
    const { agent, events } = agentAt(stub.url, () => String(++started));
    void agent.run();
    await until(() => events.length > 0, { what: "the loss" });
    expect(events).toEqual([{ type: "lost", delegationId: ID, reason: "released" }]);
    expect(started).toBe(0);
    expect(stub.to("/reply")).toEqual([]);
  });

  test("whose handler throws fails with the error's name alone; the worker gets the error itself", async () => {
    const stub = await brokerWith({});
    const error = new RangeError("no such file: /home/ann/.secret");
    const seen: unknown[] = [];
    const { agent, events } = agentAt(stub.url, () => Promise.reject(error), {
      ...{ once: true, onError: (thrown: unknown, work: Work) => seen.push(thrown, work.delegation.id) },
    });
    await agent.run();
    expect(stub.to("/reply")[0]?.body).toEqual({
      state: "failed",
      error: { code: "agent_error", message: "The agent failed: RangeError." },
    });
    expect(seen).toEqual([error, ID]);
    expect(events.at(-1)).toMatchObject({ type: "replied", error });
  });

  test.each([
    ["an error that is worth another attempt", new RangeError("x"), { retryable: true }],
    ["another error", new TypeError("x"), {}],
  ])("whose handler throws is retried if `retryOn` says so: %s", async (_, error, retry) => {
    const stub = await brokerWith({});
    const retryOn = (thrown: unknown) => thrown instanceof RangeError;
    const { agent } = agentAt(stub.url, () => Promise.reject(error), { once: true, retryOn, onError: quiet });
    await agent.run();
    const message = `The agent failed: ${error.name}.`;
    expect(stub.to("/reply")[0]?.body.error).toEqual({ code: "agent_error", message, ...retry });
  });

  test("goes on when `retryOn` throws and `onError` rejects", async () => {
    const stub = await brokerWith({});
    const seen: unknown[] = [];
    const printed = vi.spyOn(console, "error").mockImplementation(() => undefined);
    onTestFinished(() => printed.mockRestore());
    const { agent } = agentAt(stub.url, () => Promise.reject(new RangeError("x")), {
      once: true,
      retryOn: (error) => {
        throw new TypeError(`cannot judge ${error}`);
      },
      onError: async (error) => {
        seen.push(error);
        throw new Error("the log is full");
      },
    });
    await agent.run();
    expect(stub.to("/reply")[0]?.body.error).toEqual({
      code: "agent_error",
      message: "The agent failed: RangeError.",
    });
    expect(seen).toEqual([expect.any(RangeError), expect.any(TypeError)]);
    expect(printed).toHaveBeenCalledWith("errand: onError failed:", expect.any(Error));
  });

  test.each([
    { limits: { timeoutSeconds: 0.05 }, message: "The handler ran longer than 0.05 s." },
    { limits: { idleTimeoutSeconds: 0.05 }, message: "The handler reported nothing for 0.05 s." },
  ])("whose handler never ends fails: $message", async ({ limits, message }) => {
    const stub = await brokerWith({});
    const reasons: unknown[] = [];
    const handler: Handler = (work) => {
      work.signal.addEventListener("abort", () => reasons.push(work.signal.reason));
      return new Promise(() => undefined);
    };
    const options = { once: true, onError: (error: unknown) => reasons.push(error), ...limits };
    await agentAt(stub.url, handler, options).agent.run();
    const error = { code: "handler_timeout", category: "TIMEOUT", message };
    expect(stub.to("/reply")[0]?.body).toEqual({ state: "failed", error });
    expect(reasons).toHaveLength(2);
    expect(reasons[0]).toBe(reasons[1]);
    expect(reasons[0]).toBeInstanceOf(HandlerTimeoutError);
  });

  test.each([
    [{ data: { words: 3 } }, [{ data: { words: 3 } }]],
    [{ data: null, text: "none" }, [{ text: "none" }, { data: null }]],
  ])("is replied to with JSON: %j", async (outcome, parts) => {
    const stub = await brokerWith({});
    await agentAt(stub.url, () => outcome, { once: true }).agent.run();
    expect(stub.to("/reply")[0]?.body).toEqual({ state: "completed", message: { parts } });
  });

  test("whose reply is too large fails with payload_too_large, instead of hanging", async () => {
    const stub = await brokerWith({
      reply: (answer, { body }) => {
        if (body.state === "completed") answer.problem(413, "payload_too_large", "PROTOCOL");
        else answer.json({ outcome: "matched", delegation: completedWith("") });
      },
    });
    const { agent } = agentAt(stub.url, () => "very long", { once: true });
    await agent.run();
    expect(stub.to("/reply")[1]?.body).toMatchObject({
      state: "failed",
      error: { code: "payload_too_large" },
    });
  });
});

test("an artifact that exceeds the delegation's limit is refused, and not retried", async () => {
  const stub = await stubBroker((request, answer) => {
    const verb = request.path.split("/").at(-1);
    if (verb === "leases") answer.json({ leases: stub.to("/leases").length === 1 ? [leaseLike()] : [] });
    else if (verb === "artifacts") answer.problem(409, "limit_reached", "PROTOCOL");
    else if (verb === "reply") answer.json({ outcome: "matched", delegation: completedWith("") });
    else if (request.body.wait_seconds === undefined) answer.json(HEARTBEAT);
  });
  let refused: unknown;
  const { agent } = agentAt(stub.url, async ({ artifact }) => {
    refused = await artifact({ artifactId: "a", parts: [] }).catch((error: unknown) => error);
  });
  void agent.run();
  await until(() => stub.to("/reply").length > 0, { what: "the reply" });
  expect(refused).toMatchObject({ code: "limit_reached" });
  expect(stub.to("/artifacts")).toHaveLength(1);
});

describe("heartbeats", () => {
  test("are held for a third of the lease and renewed automatically", async () => {
    const stub = await brokerWith(
      {
        heartbeat: (answer, { body }) => {
          setTimeout(() => answer.json(HEARTBEAT), Number(body.wait_seconds ?? 0) * 1000);
        },
      },
      leaseLike(3),
    );
    const held = () => stub.to("/heartbeat").filter(({ body }) => body.wait_seconds !== undefined);
    const { agent, events } = agentAt(stub.url, () => until(() => held().length >= 3).then(() => "done"));
    void agent.run();
    await until(() => events.some(({ type }) => type === "replied"), { what: "a reply" });
    expect(held()[0]?.body.wait_seconds).toBeCloseTo(1, 3);
  });

  test("pass a cancel to the handler at once, and no reply is sent", async () => {
    let hold: Answer | undefined;
    const stub = await brokerWith({
      heartbeat: (answer, { body }) => {
        if (body.wait_seconds === undefined) answer.json(HEARTBEAT);
        else hold = answer;
      },
    });
    let aborted: unknown;
    const { agent, events } = agentAt(stub.url, async ({ signal }) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      aborted = signal.reason;
      return "too late";
    });
    void agent.run();
    const held = await until(() => hold, { what: "the held heartbeat" });
    held.problem(409, "lease_lost", "PROTOCOL", { details: { reason: "canceled" } });
    await until(() => events.some(({ type }) => type === "lost"), { what: "the loss" });
    expect(aborted).toMatchObject({ name: "LeaseLostError", reason: "canceled" });
    expect(stub.to("/reply")).toEqual([]);
    await until(() => stub.to("/leases").length === 2, { what: "the next poll" });
  });

  test("that do not reach the broker for twice the lease stop the handler; its work is returned when they do", async () => {
    let away = false;
    const stub = await brokerWith(
      {
        heartbeat: (answer) => {
          if (away) answer.cut();
          else answer.json(HEARTBEAT);
        },
        release: (answer) => {
          if (stub.to("/release").length < 3) answer.cut();
          else answer.json({});
        },
      },
      leaseLike(1),
    );
    let reason: unknown;
    const { agent, events } = agentAt(stub.url, ({ signal }) => {
      away = true;
      return new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => {
          reason = signal.reason;
          reject(signal.reason);
        });
      });
    });
    void agent.run();
    const released = await until(() => events.find(({ type }) => type === "released"), { what: "a release" });
    expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining(["leased", "cut_off", "released"]));
    expect(released).toMatchObject({
      reason: expect.stringMatching(/^the last heartbeat that the broker answered was sent \d s ago/),
    });
    expect(reason).toMatchObject({ name: "CutOffError" });
    expect(stub.to("/reply")).toEqual([]);
    expect(stub.to("/heartbeat").length).toBeGreaterThan(3);
  });

  test("that do not reach the broker let a handler finish, and its result is repeated until it is accepted", async () => {
    let away = false;
    const stub = await brokerWith(
      {
        heartbeat: (answer) => {
          if (away) answer.cut();
          else answer.json(HEARTBEAT);
        },
        artifacts: (answer) => {
          if (stub.to("/artifacts").length < 3) answer.cut();
          else answer.json({});
        },
      },
      leaseLike(1),
    );
    const { agent, events } = agentAt(stub.url, async (work) => {
      away = true;
      await new Promise((resolve) => work.signal.addEventListener("abort", resolve));
      await work.artifact({ artifactId: "late", parts: [{ text: "a" }] });
      return "kept";
    });
    void agent.run();
    await until(() => events.some(({ type }) => type === "replied"), { what: "a reply" });
    expect(stub.to("/reply")[0]?.body).toMatchObject({ state: "completed", text: "kept" });
  });

  test("carry progress: the first at once, then the latest, none after the end", async () => {
    const stub = await brokerWith({});
    const { agent } = agentAt(
      stub.url,
      async ({ progress }) => {
        progress("one");
        progress("two");
        progress({ message: "three", done: 3 });
        await until(() => said().length === 2, { what: "the second progress" });
        progress("four");
        return "done";
      },
      { once: true },
    );
    const said = () => stub.to("/heartbeat").flatMap(({ body }) => body.progress ?? []);
    await agent.run();
    expect(said()).toEqual([{ message: "one" }, { message: "three", done: 3 }]);
  });
});

describe("stopping", () => {
  test("returns the work and ends the poll", async () => {
    const stub = await brokerWith({});
    const stopped = new AbortController();
    let reason: unknown;
    const { agent, events, types } = agentAt(
      stub.url,
      async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        reason = signal.reason;
        return "half of it";
      },
      { concurrency: 2 },
    );
    const running = agent.run(stopped.signal);
    await until(() => events.length > 0 && stub.to("/leases").length === 2, {
      what: "work and a parked poll",
    });
    stopped.abort();
    await running;
    expect(types()).toEqual(["leased", "released"]);
    expect(reason).toMatchObject({ name: "AgentStoppingError" });
    expect(stub.to("/release")).toHaveLength(1);
    expect(stub.to("/reply")).toEqual([]);
  });

  test("lets work finish that is done within the grace period", async () => {
    const stub = await brokerWith({});
    let finish: (value: string) => void = () => undefined;
    const { agent, types } = agentAt(stub.url, () => new Promise((resolve) => (finish = resolve)));
    void agent.run();
    await until(() => types().includes("leased"), { what: "work" });
    const stopping = agent.stop(10);
    finish("all of it");
    await stopping;
    expect(types()).toEqual(["leased", "replied"]);
    expect(stub.to("/reply")[0]?.body).toEqual({ state: "completed", text: "all of it" });
  });

  test("does not wait for a handler that ignores the signal, and still returns its work", async () => {
    const stub = await brokerWith({});
    const { agent, types } = agentAt(stub.url, () => new Promise(() => undefined), {
      stopWithinSeconds: 0.1,
    });
    void agent.run();
    await until(() => types().includes("leased"), { what: "work" });
    await agent.stop();
    expect(types()).toEqual(["leased", "released"]);
  });
});

describe("outages", () => {
  test("are waited out, whatever errors the broker answers meanwhile, and reported once", async () => {
    let polls = 0;
    const stub = await brokerWith({
      leases: (answer) => {
        polls += 1;
        if (polls === 1) answer.problem(503, "redis_unavailable", "TRANSPORT");
        else if (polls === 2) answer.problem(429, "rate_limited", "TRANSPORT");
        else if (polls === 3) answer.cut();
        else if (polls === 4) answer.json({ leases: [leaseLike()] });
      },
    });
    const { agent, types } = agentAt(stub.url, () => "done");
    void agent.run();
    await until(() => types().includes("replied"), { what: "a reply" });
    expect(types()).toEqual(["retrying", "recovered", "leased", "replied"]);
  });

  test("end for an idle worker with the first answer, although its polls are held", async () => {
    let polls = 0;
    const stub = await brokerWith({
      leases: (answer, { body }) => {
        polls += 1;
        if (polls === 2 || polls === 3) answer.cut();
        else if (body.wait_seconds === 0) answer.json({ leases: [] });
      },
    });
    const { agent, types } = agentAt(stub.url, () => "done");
    void agent.run();
    await until(() => polls === 5, { what: "a held poll" });
    expect(types()).toEqual(["retrying", "recovered"]);
    expect(stub.to("/leases").map(({ body }) => body.wait_seconds)).toEqual([0, 20, 0, 0, 20]);
  });

  test("are reported once where a proxy ends only the polls that are held", async () => {
    let polls = 0;
    const stub = await brokerWith({
      leases: (answer, { body }) => {
        polls += 1;
        if (body.wait_seconds === 0) answer.json({ leases: [] });
        else if (polls < 7) answer.cut();
      },
    });
    const { agent, types } = agentAt(stub.url, () => "done");
    void agent.run();
    await until(() => polls === 7, { what: "a poll that is not cut" });
    expect(stub.to("/leases").map(({ body }) => body.wait_seconds)).toEqual([0, 20, 0, 20, 20, 20, 20]);
    expect(types()).toEqual(["retrying", "recovered", "retrying"]);
  });

  test.each([
    { keepRunning: false, stopsInMs: expect.closeTo(11_000, -4) },
    { keepRunning: true, stopsInMs: undefined },
  ])(
    "are reported once by busy workers, with keepRunning $keepRunning",
    async ({ keepRunning, stopsInMs }) => {
      let isAway = false;
      let beats = 0;
      const stub = await brokerWith({
        leases: (answer) => answer.json({ leases: [leaseLike(6)] }),
        heartbeat: (answer, { body }) => {
          if (isAway) answer.cut();
          else if (body.wait_seconds === undefined) answer.json(HEARTBEAT);
          else if (++beats <= 4) {
            // The last held heartbeat ends an outage of one try, of which nobody needs to know.
            isAway = beats === 4;
            answer.cut();
          }
        },
      });

      const { agent, events, types } = agentAt(stub.url, () => new Promise(() => undefined), {
        concurrency: 2,
        keepRunning,
        stopWithinSeconds: 0.1,
      });
      void agent.run();
      await until(() => types().includes("retrying"), { what: "an outage" });
      expect(beats).toBe(4);
      const before = stub.to("/heartbeat").length;
      await until(() => stub.to("/heartbeat").length >= before + 2, { what: "more heartbeats" });
      isAway = false;
      await until(() => types().includes("recovered"), { what: "the end of the outage" });
      expect(types()).toEqual(["leased", "leased", "retrying", "recovered"]);
      expect(events[2]).toMatchObject({ error: { code: "connection_lost" } });
      expect(events[2]).toHaveProperty("longestDelayMs", 1_000);
      expect(events.flatMap((event) => (event.type === "retrying" ? [event.stopsInMs] : []))).toEqual([
        stopsInMs,
      ]);
    },
  );

  test("are retried no sooner than Retry-After says", async () => {
    const times: number[] = [];
    const stub = await brokerWith({
      leases: (answer) => {
        times.push(performance.now());
        if (times.length === 1) answer.problem(429, "rate_limited", "TRANSPORT", { retry_after: 1 });
      },
    });
    const { agent } = agentAt(stub.url, () => "done");
    void agent.run();
    await until(() => times.length === 2, { what: "the second poll" });
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(990);
  });

  test("from the start are reported at once, unless failFast is false", async () => {
    const { url, close } = await stubBroker(() => undefined);
    await close();
    const { agent, types } = agentAt(url, () => "done");
    await expect(agent.run()).rejects.toMatchObject({ code: "unreachable" });
    expect(types()).toEqual([]);
    const patient = agentAt(url, () => "done", { failFast: false });
    void patient.agent.run();
    await until(() => patient.types().includes("retrying"), { what: "a second try" });
  });

  test("do not lose a reply: it is repeated until it is accepted, and `duplicate` counts as accepted", async () => {
    let replies = 0;
    const stub = await brokerWith({
      reply: (answer) => {
        replies += 1;
        if (replies === 1) answer.cut();
        else if (replies === 2) answer.problem(503, "shutting_down", "TRANSPORT");
        else answer.json({ outcome: "duplicate", delegation: completedWith("done") });
      },
    });
    const { agent, types } = agentAt(stub.url, () => "done", { once: true });
    await agent.run();
    expect(types()).toEqual(["leased", "retrying", "recovered", "replied"]);
    expect(stub.to("/reply").map(({ body }) => body)).toEqual(
      Array(3).fill({ state: "completed", text: "done" }),
    );
  });

  test("differ from refusals: a revoked token ends the agent", async () => {
    const stub = await brokerWith({ leases: (answer) => answer.problem(401, "unauthenticated", "AUTH") });
    const { agent } = agentAt(stub.url, () => "done", { concurrency: 3 });
    await expect(agent.run()).rejects.toMatchObject({ code: "unauthenticated" });
  });

  test("a late reply is dropped: another worker has the lease", async () => {
    const stub = await brokerWith({
      reply: (answer) => answer.problem(409, "lease_lost", "PROTOCOL", { details: { reason: "expired" } }),
    });
    const { agent, types } = agentAt(stub.url, () => "done");
    void agent.run();
    await until(() => types().includes("lost"), { what: "the loss" });
    expect(stub.to("/reply")).toHaveLength(1);
  });
});
