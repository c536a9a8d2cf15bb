/** An agent with a real broker: its leases, its output, its end. */
import { describe, expect, onTestFinished, test } from "vitest";
import {
  Agent,
  type AgentEvent,
  type AgentOptions,
  Delegator,
  type Handler,
  LeaseLostError,
  type Work,
} from "../../../src/index.ts";
import { as, client, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { losingAnswers } from "../lossy-fetch.ts";

const PATIENCE_SECONDS = 50;

/** A broker with the agent scout, which retries failed work at once, and a caller. */
async function setup() {
  const broker = await startBroker();
  const { url } = broker;
  const token = await as(url, "agent:scout");
  await token.agent("scout", { backoff: { initial_ms: 0 } });
  const alice = await as(url, "caller:alice");
  const delegator = new Delegator({ url, token: alice.token });
  const send = async (task: string) => (await delegator.delegate({ target: "scout", task })).id;
  const scout = (handler: Handler, options: Partial<AgentOptions> = {}) => {
    const events: AgentEvent[] = [];
    const onEvent = (event: AgentEvent) => events.push(event);
    const agent = new Agent({ url, token: token.token, agent: "scout", onEvent, ...options }, handler);
    const running = agent.run();
    // Each test decides how its agent ends, if the test is about that.
    running.catch(() => undefined);
    onTestFinished(() => agent.stop(0));
    return { agent, running, types: () => events.map(({ type }) => type) };
  };
  return { ...broker, token, delegator, send, scout };
}

/** Work that lasts until its signal aborts. */
function untilAborted({ signal }: Work): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** Leases that renew or expire while a test waits. Shorter ones would expire when a busy machine stops this process. */
const LEASE_SECONDS = 5;

describe("leases", () => {
  test("arrive with the answers to earlier replies: one poll works through a queue", async () => {
    const { delegator, send, scout } = await setup();
    const ids = [await send("1"), await send("2"), await send("3")];
    let polls = 0;
    const counting: typeof fetch = (input, init) => {
      if (String(input).endsWith("/leases")) polls += 1;
      return fetch(input, init);
    };
    let pollsAtLast = 0;
    const work: Handler = ({ text }) => {
      if (text === "3") pollsAtLast = polls;
      return `did ${text}`;
    };
    scout(work, { fetch: counting });
    const ended = await Promise.all(
      ids.map((id) => delegator.wait(id, { timeoutSeconds: PATIENCE_SECONDS })),
    );
    expect(ended.map(({ reply }) => reply?.parts[0]?.text)).toEqual(["did 1", "did 2", "did 3"]);
    expect(pollsAtLast).toBe(1);
  });

  test("are extended by heartbeats for longer than their length", async () => {
    const { delegator, send, scout } = await setup();
    const id = await send("long");
    const outlived = async ({ delegation: { lease } }: Work) => {
      const first = Date.parse(lease?.expires_at ?? "");
      await until(
        async () =>
          Date.parse((await delegator.get(id)).lease?.expires_at ?? "") > first + LEASE_SECONDS * 1_000,
        {
          what: "the lease extended beyond its own length",
        },
      );
      return "done";
    };
    scout(outlived, { leaseSeconds: LEASE_SECONDS });
    expect(await delegator.wait(id, { timeoutSeconds: PATIENCE_SECONDS })).toMatchObject({
      state: "completed",
      attempt: 1,
    });
  });

  test("are worked on concurrently, up to the given number", async () => {
    const { delegator, send, scout } = await setup();
    const ids = [await send("1"), await send("2"), await send("3")];
    let now = 0;
    const together: Handler = async () => {
      now += 1;
      await until(() => now === 3, { what: "three at once" });
    };
    scout(together, { concurrency: 3 });
    for (const id of ids)
      expect((await delegator.wait(id, { timeoutSeconds: PATIENCE_SECONDS })).state).toBe("completed");
  });

  test("with a retryable failure are tried again", async () => {
    const { delegator, send, scout } = await setup();
    const id = await send("x");
    scout(({ attempt }) =>
      attempt === 1
        ? { state: "failed", error: { code: "busy", message: "not now", retryable: true } }
        : `attempt ${attempt}`,
    );
    const ended = await delegator.wait(id, { timeoutSeconds: PATIENCE_SECONDS });
    expect(ended).toMatchObject({
      state: "completed",
      attempt: 2,
      reply: { parts: [{ text: "attempt 2" }] },
    });
  });
});

describe("the signal aborts", () => {
  test("when the delegation is canceled, and later results are ignored", async () => {
    const { delegator, send, scout } = await setup();
    const id = await send("x");
    let reason: unknown;
    const { types } = scout(async (work) => {
      reason = await untilAborted(work).catch((error: unknown) => error);
      return "too late";
    });
    await until(() => types().includes("leased"), { what: "the work begun" });
    await delegator.cancel(id);
    await until(() => types().includes("lost"), { what: "the loss" });
    expect(reason).toMatchObject({ name: "LeaseLostError", reason: "canceled" });
    expect(await delegator.get(id)).toMatchObject({ state: "canceled", reply: null });
  });

  test("when the agent's token is revoked, and the agent ends", async () => {
    const { url, token, send, scout } = await setup();
    await send("x");
    let reason: unknown;
    const { running, types } = scout(
      async (work) => {
        reason = await untilAborted(work).catch((error: unknown) => error);
      },
      { leaseSeconds: LEASE_SECONDS },
    );
    await until(() => types().includes("leased"), { what: "the work begun" });
    await client(url).call("DELETE", `/v1/tokens/${token.tokenId}`);
    await expect(running).rejects.toMatchObject({ code: "unauthenticated" });
    expect(reason).toBeInstanceOf(LeaseLostError);
  });

  test("when the agent stops: the work is returned to other workers, no attempt spent", async () => {
    const { delegator, token, send, scout } = await setup();
    const id = await send("x");
    let reason: unknown;
    const { agent, types } = scout(async (work) => {
      reason = await untilAborted(work).catch((error: unknown) => error);
    });
    await until(() => types().includes("leased"), { what: "the work begun" });
    await agent.stop();
    expect(types()).toEqual(["leased", "released"]);
    expect(reason).toMatchObject({ name: "AgentStoppingError" });
    const { leases } = (await token.lease("scout")).body;
    expect(leases).toMatchObject([{ attempt: 1, delegation: { id } }]);
    expect((await delegator.get(id)).attempt).toBe(1);
  });
});

describe("an agent that stops", () => {
  test("finishes work in progress, and takes no more", async () => {
    const { delegator, send, scout } = await setup();
    const [id, next] = [await send("now"), await send("later")];
    let finish = () => {};
    const { agent, types } = scout(() => new Promise((resolve) => (finish = () => resolve("whole"))), {
      drainSeconds: 15,
    });
    await until(() => types().includes("leased"), { what: "the work begun" });
    const stopped = agent.stop();
    finish();
    await stopped;
    expect((await delegator.get(id)).reply?.parts).toEqual([{ text: "whole" }]);
    expect(await delegator.get(next)).toMatchObject({ state: "submitted", attempt: 1, version: 1 });
  });

  test("returns work that does not end in time", async () => {
    const { delegator, send, scout } = await setup();
    const id = await send("x");
    const { agent, types } = scout(() => new Promise(() => undefined), { stopWithinSeconds: 0.1 });
    await until(() => types().includes("leased"), { what: "the work begun" });
    await agent.stop(0.1);
    expect(types()).toEqual(["leased", "released"]);
    expect(await delegator.get(id)).toMatchObject({ state: "submitted", attempt: 1 });
  });
});

/** The broker's answer to a sender above the rate limit. */
function tooFast(): Response {
  const problem = {
    ...{ type: "urn:errand:error:rate_limited", title: "Too many requests", status: 429, detail: "too fast" },
    ...{ code: "rate_limited", category: "TRANSPORT", retryable: true, recovery: "Send less often." },
  };
  return Response.json(problem, { status: 429, headers: { "retry-after": "1" } });
}

describe("artifacts", () => {
  const draft = (text: string) => ({ artifactId: "draft", parts: [{ text }] });
  const sends = (asked: string) => asked.endsWith("/artifacts");

  test("arrive in chunks, in order, before the reply, whether the handler awaits them or not", async () => {
    const { delegator, send, scout } = await setup();
    const id = await send("x");
    scout((work) => {
      for (const text of ["a", "b", "c"]) void work.artifact(draft(text), { append: true });
      void work.artifact(
        { artifactId: "map", parts: [{ url: "https://maps.example/1" }] },
        { lastChunk: true },
      );
      return "done";
    });
    const { artifacts, reply } = await delegator.wait(id, { timeoutSeconds: PATIENCE_SECONDS });
    expect(artifacts).toEqual([
      { artifactId: "draft", parts: [{ text: "a" }, { text: "b" }, { text: "c" }] },
      { artifactId: "map", parts: [{ url: "https://maps.example/1" }] },
    ]);
    expect(reply?.parts).toEqual([{ text: "done" }]);
    const logged: unknown[] = [];
    for await (const event of delegator.watch(id, { after: "0" })) {
      if (event.type === "DELEGATION_STATUS" && event.status === "artifact") logged.push(event.last_chunk);
    }
    expect(logged).toEqual([false, false, false, true]);
  });

  test("are stored once although answers get lost, and without those of an earlier attempt", async () => {
    const { delegator, send, scout } = await setup();
    const id = await send("x");
    let sent = 0;
    // One chunk in each attempt.
    const fetch = losingAnswers((asked) => sends(asked) && [2, 5].includes(++sent), 2);
    scout(
      async ({ attempt, artifact }) => {
        const texts = attempt === 1 ? ["a", "b"] : ["c", "d"];
        for (const text of texts) await artifact(draft(text), { append: true });
        if (attempt > 1) return "done";
        return { state: "failed", error: { code: "busy", message: "not now", retryable: true } };
      },
      { fetch },
    );
    const { artifacts, attempt } = await delegator.wait(id, { timeoutSeconds: PATIENCE_SECONDS });
    expect(attempt).toBe(2);
    expect(fetch.lost).toHaveLength(2);
    expect(artifacts).toEqual([{ artifactId: "draft", parts: ["c", "d"].map((text) => ({ text })) }]);
  });

  test("that are sent too fast are delayed, and only the refused one is sent again", async () => {
    const { delegator, send, scout } = await setup();
    const id = await send("x");
    const sent: number[] = [];
    const hasty: typeof fetch = async (input, init) => {
      if (!String(input).endsWith("/artifacts")) return fetch(input, init);
      sent.push(performance.now());
      return sent.length === 2 ? tooFast() : fetch(input, init);
    };
    scout(
      (work) => {
        for (const text of ["a", "b", "c"]) void work.artifact(draft(text), { append: true });
      },
      { fetch: hasty },
    );
    const { artifacts } = await delegator.wait(id, { timeoutSeconds: PATIENCE_SECONDS });
    expect(artifacts).toEqual([{ artifactId: "draft", parts: ["a", "b", "c"].map((text) => ({ text })) }]);
    expect(sent).toHaveLength(4);
    expect((sent[2] ?? 0) - (sent[1] ?? 0)).toBeGreaterThanOrEqual(990);
  });

  test("replace the artifact with their id unless they are appended", async () => {
    const { delegator, send, scout } = await setup();
    const id = await send("x");
    scout(async ({ artifact }) => {
      await artifact(draft("first"));
      await artifact(draft("second"));
    });
    const { artifacts } = await delegator.wait(id, { timeoutSeconds: PATIENCE_SECONDS });
    expect(artifacts).toEqual([draft("second")]);
  });

  test("that are too large are refused, and the work continues", async () => {
    const { delegator, send, scout } = await setup();
    const id = await send("x");
    scout(async ({ artifact }) => {
      const refused = await artifact(draft("x".repeat(2_000_000))).catch((error: unknown) => error);
      return refused instanceof Error && "code" in refused ? String(refused.code) : "taken";
    });
    const { reply, artifacts } = await delegator.wait(id, { timeoutSeconds: PATIENCE_SECONDS });
    expect(reply?.parts).toEqual([{ text: "payload_too_large" }]);
    expect(artifacts).toEqual([]);
  });

  test("of canceled work are refused with lease_lost", async () => {
    const { delegator, send, scout } = await setup();
    const id = await send("x");
    let refused: unknown;
    scout(async ({ artifact }) => {
      await delegator.cancel(id);
      refused = await artifact(draft("late")).catch((error: unknown) => error);
    });
    await until(() => refused, { what: "the refusal" });
    expect(refused).toMatchObject({ name: "LeaseLostError", reason: "canceled" });
  });
});
