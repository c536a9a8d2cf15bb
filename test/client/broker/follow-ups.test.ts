/** Follow-ups that reach a handler, and delegations that a handler creates, with a real broker. */
import { describe, expect, onTestFinished, test } from "vitest";
import {
  Agent,
  type AgentEvent,
  type AgentOptions,
  type Delegation,
  Delegator,
  type Handler,
  type Message,
  textOf,
  type Work,
} from "../../../src/index.ts";
import { as, OPERATOR, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

const PATIENT = { timeoutSeconds: 50 };

/** A broker with the agents scout and smith, and a caller. */
async function setup() {
  const { url } = await startBroker();
  const alice = await as(url, "caller:alice");
  const delegator = new Delegator({ url, token: alice.token });
  const operator = new Delegator({ url, token: OPERATOR });
  const tokens: Record<string, string> = {};
  for (const name of ["scout", "smith"]) {
    const agent = await as(url, `agent:${name}`);
    await agent.agent(name, { backoff: { initial_ms: 0 } });
    tokens[name] = agent.token;
  }
  const send = async () => (await delegator.delegate({ target: "scout", task: "x" })).id;
  const startAgent = (name: string, handler: Handler, options: Partial<AgentOptions> = {}) => {
    const events: AgentEvent[] = [];
    const onEvent = (event: AgentEvent) => events.push(event);
    const agent = new Agent(
      { url, token: tokens[name], agent: name, onEvent, onError: () => undefined, ...options },
      handler,
    );
    agent.run().catch(() => undefined);
    onTestFinished(() => agent.stop(0));
    return { agent, types: () => events.map(({ type }) => type) };
  };
  return { url, delegator, operator, send, startAgent };
}

const aborted = ({ signal }: Work) =>
  new Promise<unknown>((resolve) => signal.addEventListener("abort", () => resolve(signal.reason)));

/** Counts heartbeats, and records the `seen` of each. */
function watchingBeats(): typeof fetch & {
  readonly seen: (string | undefined)[];
  readonly held: () => boolean;
} {
  const seen: (string | undefined)[] = [];
  let open = 0;
  const watched: typeof fetch = async (input, init) => {
    if (!String(input).endsWith("/heartbeat")) return fetch(input, init);
    const body = JSON.parse(String(init?.body));
    seen.push(body.seen);
    if (body.wait_seconds !== undefined) open += 1;
    return fetch(input, init).finally(() => {
      if (body.wait_seconds !== undefined) open -= 1;
    });
  };
  return Object.assign(watched, { seen, held: () => open > 0 });
}

describe("a follow-up", () => {
  test("reaches the handler's listener through the held heartbeat, and is marked as seen once", async () => {
    const { delegator, send, startAgent } = await setup();
    const id = await send();
    await delegator.message(id, "before the lease");
    const fetch = watchingBeats();
    const got: string[] = [];
    startAgent(
      "scout",
      (work) =>
        new Promise((resolve) => {
          work.onMessage((message) => {
            got.push(textOf(message));
            if (got.length === 3) resolve(got.join(", "));
          });
        }),
      { fetch },
    );
    await until(() => got.length === 1);
    // A heartbeat is held only if there is nothing to return.
    await until(() => fetch.held() && fetch.seen.some((one) => one !== undefined));
    await delegator.message(id, "second");
    await until(() => got.length === 2, { what: "the message, long before a heartbeat is due" });
    const { history } = await delegator.message(id, "third");
    const { reply } = await delegator.wait(id, PATIENT);
    expect(reply?.parts).toEqual([{ text: "before the lease, second, third" }]);
    const ids = history.map(({ messageId }) => messageId);
    expect(fetch.seen.filter((one) => one !== undefined)).toEqual(
      ids.slice(0, fetch.seen.filter(Boolean).length),
    );
    expect(fetch.seen.filter(Boolean).length).toBeGreaterThanOrEqual(2);
  });

  test("waits for a later reader, and is there again with the next lease", async () => {
    const { delegator, operator, send, startAgent } = await setup();
    const id = await send();
    const messageId = "the-first";
    await delegator.message(id, { messageId, parts: [{ text: "a" }] });
    const fetch = watchingBeats();
    let read = () => {};
    const reading = new Promise<void>((resolve) => (read = resolve));
    const taken: Message[] = [];
    const first = startAgent(
      "scout",
      async (work) => {
        await reading;
        for await (const message of work.messages) taken.push(message);
        return "not sent";
      },
      { fetch },
    );
    await until(() => fetch.seen.length > 1, { what: "a heartbeat that nobody listens to" });
    expect(fetch.seen.every((one) => one === undefined)).toBe(true);
    read();
    await until(() => fetch.seen.includes(messageId), { what: "word that it was seen" });
    await delegator.message(id, "b");
    await until(() => taken.length === 2);
    // The loop ends with the run.
    await first.agent.stop();
    expect(first.types()).toEqual(["leased", "released"]);

    startAgent("scout", async ({ messages }) => {
      const again: string[] = [];
      for await (const message of messages) if (again.push(textOf(message)) === 2) break;
      return again.join(" ");
    });
    expect((await delegator.wait(id, PATIENT)).reply?.parts).toEqual([{ text: "a b" }]);
    expect((await operator.get(id)).attempt).toBe(1);
  });

  test("from before a question is there again in the next run; its answer is not one", async () => {
    const { delegator, send, startAgent } = await setup();
    const id = await send();
    await delegator.message(id, "a");
    startAgent("scout", async (work) => {
      const got: string[] = [];
      work.onMessage((message) => got.push(textOf(message)));
      await work.ask("Go on?");
      return got.join(" ");
    });
    await delegator.wait(id, PATIENT);
    await delegator.approve(id, { text: "yes" });
    expect((await delegator.wait(id, PATIENT)).reply?.parts).toEqual([{ text: "a" }]);
  });

  test("whose listener throws aborts the work and fails it", async () => {
    const { delegator, send, startAgent } = await setup();
    const id = await send();
    await delegator.message(id, "a");
    let reason: unknown;
    startAgent("scout", async (work) => {
      work.onMessage(async () => {
        throw new Error("cannot do that");
      });
      reason = await aborted(work);
      return "not sent";
    });
    const { state, error } = await delegator.wait(id, PATIENT);
    expect([state, error?.code, error?.message]).toEqual([
      "failed",
      "agent_error",
      "The agent failed: Error.",
    ]);
    expect(reason).toMatchObject({ message: "cannot do that" });
  });
});

describe("a delegation made by a handler", () => {
  test("has its work's parent, conversation and trace, and exists once although the handler runs twice", async () => {
    const { delegator, operator, startAgent } = await setup();
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const root = await delegator.delegate({ target: "scout", task: "x" }, { traceparent });
    const traces: unknown[] = [];
    startAgent("smith", (work) => {
      traces.push(work.traceparent);
      return `forged ${work.text}`;
    });
    startAgent("scout", async (work) => {
      const parts = await Promise.all(
        ["a", "a", "b"].map((task) => work.delegate({ target: "smith", task })),
      );
      const { decision } = await work.ask("Forge them?");
      const ended = await Promise.all(
        parts.map(({ id }) => work.delegator.wait(id, { signal: work.signal })),
      );
      return `${decision}: ${ended.map(({ reply }) => reply && textOf(reply)).join(", ")}`;
    });
    await delegator.wait(root.id, PATIENT);
    await delegator.approve(root.id);
    const { reply } = await delegator.wait(root.id, PATIENT);
    expect(reply?.parts).toEqual([{ text: "approve: forged a, forged a, forged b" }]);
    const tree: Delegation[] = [];
    for await (const { delegation, depth } of operator.tree(root.id)) if (depth > 0) tree.push(delegation);
    expect(tree.map(({ task_preview }) => task_preview).sort()).toEqual(["a", "a", "b"]);
    for (const { parent_id, context_id, delegator: by } of tree) {
      expect([parent_id, context_id, by]).toEqual([root.id, root.context_id, "agent:scout"]);
    }
    expect(traces).toEqual([traceparent, traceparent, traceparent]);
  });

  test("cannot form a loop, and is canceled with its parent", async () => {
    const { delegator, operator, send, startAgent } = await setup();
    const id = await send();
    let child = "";
    let refused: unknown;
    const at = { scout: "", smith: "" };
    startAgent("smith", async (work) => {
      const reason = await aborted(work);
      at.smith = reason instanceof Error && "reason" in reason ? String(reason.reason) : "";
    });
    startAgent("scout", async (work) => {
      refused = await work.delegate({ target: "scout", task: "again" }).catch((error: unknown) => error);
      child = (await work.delegate({ target: "smith", task: "part" })).id;
      const reason = await aborted(work);
      at.scout = reason instanceof Error && "reason" in reason ? String(reason.reason) : "";
      refused = [
        refused,
        await work.delegate({ target: "smith", task: "late" }).catch((error: unknown) => error),
      ];
    });
    await until(async () => child !== "" && (await operator.get(child)).state === "working", {
      timeoutMs: 50_000,
    });
    await delegator.cancel(id);
    await until(() => at.scout !== "" && at.smith !== "" && Array.isArray(refused));
    expect(at).toEqual({ scout: "canceled", smith: "canceled" });
    expect(refused).toMatchObject([
      { code: "delegation_loop" },
      { name: "LeaseLostError", reason: "canceled" },
    ]);
    expect(await operator.get(child)).toMatchObject({ state: "canceled", parent_id: id });
  });
});
