/** Push agents: the broker calls the A2A server itself, from any gateway; delegators see no difference. */
import { expect, onTestFinished, test, vi } from "vitest";
import { agentRequestSchema } from "../../src/schema/agent.ts";
import { rawCalls } from "../doors/a2a/support.ts";
import { type A2aServerOptions, startA2aServer } from "../support/a2a-server.ts";
import { as, client, OPERATOR, startBroker } from "../support/broker.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { startReceiver } from "../support/receiver.ts";
import { SLOW, watching } from "../support/relaying.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 180_000 });

const LOCAL = { callbackAllow: ["127.0.0.1"] };
const LEASE_SECONDS = 60;
const never = () => new Promise<void>(() => undefined);

async function setup(options: A2aServerOptions, agent: object = {}) {
  const server = await startA2aServer(options);
  const broker = await startBroker(LOCAL);
  const api = client(broker.url);
  const delivery = { mode: "push", url: server.url };
  const put = await api.agent("remote", { delivery, ...agent });
  expect(put.status).toBe(201);
  return { ...broker, server, api, delivery, ...watching(api) };
}

test.each(["1.0", "0.3"] as const)(
  "a delegation is passed on, asks, is answered and ends (A2A %s)",
  async (version) => {
    const { server, api, delegate, ended, inState } = await setup({
      version,
      turn(turn) {
        turn.begin();
        turn.status("WORKING", "at it");
        turn.artifact("out", "one ");
        turn.artifact("out", "two", { append: true });
        if (turn.number === 1) turn.status("INPUT_REQUIRED", "Which?");
        else turn.status("COMPLETED", `took ${turn.text}`);
      },
    });
    const id = await delegate("choose");
    const asks = await inState(id, "input_required");
    expect(asks.interrupt.requests).toMatchObject([{ message: { parts: [{ text: "Which?" }] } }]);
    await api.answer(id, asks.interrupt.id, { text: "that" });
    const done = await ended(id);
    expect(done).toMatchObject({ state: "completed", attempt: 1, reply: { parts: [{ text: "took that" }] } });
    expect(done.artifacts[0].parts).toEqual([{ text: "one " }, { text: "two" }]);
    expect(server.tasks()).toHaveLength(1);
    const { body } = await api.call("GET", "/v1/agents/remote");
    expect(body).toMatchObject({
      delivery: { mode: "push", url: server.url },
      presence: { state: "online", pollers: 0 },
    });
  },
);

test("a result that does not fit fails the delegation, once", async () => {
  const { server, delegate, ended } = await setup({
    turn(turn) {
      if (turn.text === "say") return turn.message("5");
      turn.begin();
      turn.status("COMPLETED", "5");
    },
  });
  for (const task of ["do", "say"]) {
    const done = await ended(await delegate(task, { result_schema: { type: "integer" } }));
    expect([done.state, done.error.code, done.attempt]).toEqual(["failed", "result_invalid", 1]);
  }
  expect(server.turns).toHaveLength(2);
});

test("the work of two gateways reaches the server once each, within max_working", async () => {
  let working = 0;
  let most = 0;
  const { another, api, delegate, ended, server } = await setup(
    {
      async turn(turn) {
        turn.begin();
        working += 1;
        most = Math.max(most, working);
        await new Promise((resolve) => setTimeout(resolve, 20));
        working -= 1;
        turn.status("COMPLETED", turn.text);
      },
    },
    { limits: { max_working: 3 } },
  );
  const other = client((await another()).url);
  const ids = await Promise.all(
    Array.from({ length: 20 }, async (_, n) => {
      const { body } = await (n % 2 ? api : other).delegate("remote", { task: String(n) });
      return String(body.id);
    }),
  );
  for (const id of ids) expect(await ended(id)).toMatchObject({ state: "completed", attempt: 1 });
  expect(server.turns.map(({ text }) => text).sort()).toEqual(ids.map((_, n) => String(n)).sort());
  expect(most).toBeLessThanOrEqual(3);
  expect(await ended(await delegate("one more"))).toMatchObject({ state: "completed" });
});

test("a killed gateway leaves its work to another one, which continues the same task", async () => {
  let go = () => {};
  const server = await startA2aServer({
    async turn(turn) {
      turn.begin();
      turn.artifact("out", "one ");
      await new Promise<void>((resolve) => {
        go = resolve;
      });
      turn.artifact("out", "two", { append: true });
      turn.status("COMPLETED", "done");
    },
  });
  const broker = await startBroker({ ...LOCAL, sweepEveryMs: 100 });
  const api = client(broker.url);
  const { ended } = watching(api);
  await broker.gateway.close();
  const dying = await startGatewayProcess(broker.db, {
    sweepEveryMs: 100,
    callbackAllow: LOCAL.callbackAllow,
  });
  const there = client(dying.url);
  const delivery = { mode: "push", url: server.url };
  await there.agent("remote", {
    delivery,
    limits: { lease_seconds: LEASE_SECONDS },
    backoff: { initial_ms: 0 },
  });
  const { body } = await there.delegate("remote", { task: "survive" });
  await until(async () => (await there.get(body.id)).body.artifacts.length === 1, SLOW);
  await dying.kill();
  broker.clock.offset_ms = LEASE_SECONDS * 1_000 + 1;
  const next = await broker.another();
  const here = client(next.url);
  await until(async () => {
    const { body: seen } = await here.get(body.id);
    return seen.attempt === 2 && seen.artifacts.length === 1;
  }, SLOW);
  go();
  const done = await watching(here).ended(body.id);
  expect(done).toMatchObject({ state: "completed", attempt: 2 });
  expect(done.artifacts[0].parts).toEqual([{ text: "one " }, { text: "two" }]);
  expect(server.turns).toHaveLength(1);
  expect(ended).toBeTypeOf("function");
});

test("a gateway that stops returns its work, no attempt spent", async () => {
  let go = () => {};
  const { another, gateway, delegate, server, api } = await setup({
    async turn(turn) {
      turn.begin();
      turn.status("WORKING", "at it");
      await new Promise<void>((resolve) => {
        go = resolve;
      });
      turn.status("COMPLETED", "done");
    },
  });
  const id = await delegate("go on");
  await until(async () => (await api.get(id)).body.progress !== null, SLOW);
  await gateway.close();
  const there = client((await another()).url);
  await until(async () => (await there.get(id)).body.state === "working", SLOW);
  go();
  expect(await watching(there).ended(id)).toMatchObject({ state: "completed", attempt: 1 });
  expect([server.turns.length, server.canceled]).toEqual([1, []]);
});

test("a cancel and a follow-up reach the task at once", async () => {
  const { api, delegate, server } = await setup({
    turn(turn) {
      turn.begin();
      return never();
    },
  });
  const id = await delegate("long");
  await until(() => server.turns.length === 1, SLOW);
  await api.message(id, "faster");
  await until(() => server.turns.length === 2, SLOW);
  expect(server.turns[1]).toMatchObject({ text: "faster", taskId: server.turns[0]?.taskId });
  await api.cancel(id);
  await until(() => server.canceled.length > 0, SLOW);
});

test("a cancel while a question is open cancels the task", async () => {
  const { api, delegate, inState, server } = await setup({
    turn(turn) {
      turn.begin();
      turn.status("INPUT_REQUIRED", "Deploy?");
    },
  });
  const id = await delegate("deploy");
  await inState(id, "input_required");
  await api.cancel(id);
  await until(() => server.canceled.length === 1, SLOW);
});

test("a server that answers no cancel takes as many calls at once as one host may, and callbacks go on", async () => {
  const receiver = await startReceiver();
  const { api, delegate, inState, server } = await setup({
    turn(turn) {
      turn.begin();
      turn.status("INPUT_REQUIRED", "Deploy?");
    },
    onCancel: () => {},
  });
  const ids = await Promise.all(Array.from({ length: 8 }, () => delegate("deploy")));
  for (const id of ids) await inState(id, "input_required");
  await Promise.all(ids.map((id) => api.cancel(id)));
  await until(() => server.canceled.length === 5, SLOW);
  await api.agent("scout");
  const { id } = (await api.delegate("scout", { callback: { url: receiver.url } })).body;
  await api.cancel(id);
  await until(() => receiver.received.length === 1, SLOW);
  expect(server.canceled.length).toBe(5);
});

test("a bare message stays one for a blocking A2A sender, unless the server started a task before", async () => {
  const { url } = await setup({
    turn(turn) {
      if (turn.text === "task") turn.begin();
      if (turn.text === "task") turn.status("COMPLETED", "done");
      else turn.message("hi");
    },
  });
  const { rpc } = rawCalls(url, OPERATOR, "remote");
  const send = async (text: string) => {
    const message = { messageId: text, role: "ROLE_USER", parts: [{ text }] };
    return (await rpc("SendMessage", { message })).body.result;
  };
  expect(await send("talk")).toMatchObject({ message: { parts: [{ text: "hi" }] } });
  expect(await send("task")).toMatchObject({ task: { status: { message: { parts: [{ text: "done" }] } } } });
});

test("a server that is away costs no attempt, and presence shows it", async () => {
  const { api, delegate, ended, server } = await setup({ turn: (turn) => turn.message("back") });
  await server.kill();
  const id = await delegate("wait");
  const agent = async () => (await api.call("GET", "/v1/agents/remote")).body;
  await until(async () => (await agent()).presence.state === "stale", SLOW);
  await server.restart();
  expect(await ended(id)).toMatchObject({ state: "completed", attempt: 1 });
  await until(async () => (await agent()).presence.state === "online", SLOW);
});

test("only the operator may set the URL, and only the agent and the operator see it", async () => {
  const { url, api, server, delivery } = await setup({ turn: (turn) => turn.message("hi") });
  const own = await as(url, "agent:remote");
  expect((await own.agent("remote", { delivery })).status).toBe(200);
  for (const other of [undefined, { mode: "poll" }, { mode: "push", url: `${server.url}/other` }]) {
    const refused = await own.agent("remote", { ...(other && { delivery: other }) });
    expect([refused.status, refused.body.code]).toEqual([403, "forbidden"]);
  }
  const shown = { ...delivery, credentials_set: false };
  expect((await own.call("GET", "/v1/agents/remote")).body.delivery).toEqual(shown);
  const viewer = await as(url, "viewer:wall");
  expect((await viewer.call("GET", "/v1/agents/remote")).body.delivery).toEqual({ mode: "push" });
  const fresh = await as(url, "agent:fresh");
  expect((await fresh.agent("fresh", { delivery })).status).toBe(403);
  expect((await api.agent("remote", {})).body.delivery).toEqual({ mode: "poll" });
});

test("a server that fails every task at once gets three, and one after each pause", async () => {
  let isBroken = true;
  let taken = 0;
  const { api, ended, delivery } = await setup({
    turn(turn) {
      taken += 1;
      turn.begin();
      if (isBroken) turn.status("FAILED", "broken");
      else turn.status("COMPLETED", "done");
    },
  });
  const ids: string[] = [];
  const states = async () => (await Promise.all(ids.map((id) => api.get(id)))).map(({ body }) => body.state);
  await api.call("POST", "/v1/agents/remote/pause");
  for (let n = 0; n < 12; n += 1) ids.push((await api.delegate("remote")).body.id);
  await api.call("POST", "/v1/agents/remote/resume");
  const paused = await until(
    async () => (await api.call("GET", "/v1/agents/remote")).body.presence.paused,
    SLOW,
  );
  expect(paused).toMatchObject({
    workers: 1,
    reason: expect.stringContaining("in a row failed within 10 s"),
  });
  expect(taken).toBe(3);
  expect((await states()).filter((state) => state === "failed")).toHaveLength(3);
  isBroken = false;
  // A change of the agent may have fixed it.
  await api.agent("remote", { delivery, description: "fixed" });
  for (const id of ids) await ended(id);
  expect((await states()).filter((state) => state === "completed")).toHaveLength(9);
});

test("a server that cannot be reached pauses its agent, which says so without the address", async () => {
  const { api, delegate, server } = await setup({ bearer: "right", turn: (turn) => turn.message("in") });
  await delegate("enter");
  const { body } = await until(async () => {
    const answer = await api.call("GET", "/v1/agents/remote");
    return answer.body.presence.paused && answer;
  }, SLOW);
  expect(body.presence.paused.reason).toBe("its A2A server cannot be reached, or refuses it");
  const [row] = (await api.call("GET", "/v1/agents/remote/workers")).body.workers;
  expect(row).toMatchObject({
    id: expect.stringMatching(/^gateway-/),
    paused: { reason: body.presence.paused.reason },
  });
  expect(JSON.stringify(row)).not.toContain(new URL(server.url).port);
});

test("private addresses are refused when the URL is set, and when they are dialled", async () => {
  const server = await startA2aServer({ turn: (turn) => turn.message("never") });
  const { port } = new URL(server.url);
  const { url } = await startBroker({
    callbackLookup: (_host, _options, callback) => callback(null, [{ address: "127.0.0.1", family: 4 }]),
  });
  const api = client(url);
  for (const host of ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "10.1.2.3"]) {
    const delivery = { mode: "push", url: `http://${host}:${port}` };
    const refused = await api.agent("remote", { delivery });
    expect([refused.status, refused.body.code]).toEqual([400, "invalid_request"]);
    expect(refused.body.details.issues[0].path).toBe("delivery.url");
  }
  expect((await api.agent("remote", { delivery: { mode: "push", url: "ftp://h" } })).status).toBe(400);
  expect(
    (await api.agent("remote", { delivery: { mode: "push", url: `http://a.example:${port}` } })).status,
  ).toBe(201);
  const id = (await api.delegate("remote")).body.id;
  const released = await until(async () => {
    const { body } = await api.events(id);
    return body.events.find((event: { status?: string }) => event.status === "released");
  }, SLOW);
  expect(released.reason).not.toContain("127.0.0.1");
  expect(server.calls).toEqual([]);
});

test("a card with a private address does not make the broker call it", async () => {
  const server = await startA2aServer({ turn: (turn) => turn.message("never") });
  const { createServer } = await import("node:http");
  const card = await (await fetch(`${server.url}/.well-known/agent-card.json`)).text();
  const inner = card.replaceAll("127.0.0.1", "127.0.0.2");
  const cards = createServer((_, answer) => answer.setHeader("content-type", "application/json").end(inner));
  await new Promise<void>((resolve) => cards.listen(0, "127.0.0.1", resolve));
  const address = cards.address();
  const port = typeof address === "object" ? address?.port : 0;
  const { url } = await startBroker(LOCAL);
  const api = client(url);
  await api.agent("remote", { delivery: { mode: "push", url: `http://127.0.0.1:${port}` } });
  const id = (await api.delegate("remote")).body.id;
  const released = await until(async () => {
    const { body } = await api.events(id);
    return body.events.find((event: { status?: string }) => event.status === "released");
  }, SLOW);
  cards.close();
  cards.closeAllConnections();
  expect(released.reason).toBe("the broker may not call the address of the A2A server");
  expect(server.calls).toEqual([]);
});

test("the broker does not call an idle push agent, nor an agent that was changed back to polling", async () => {
  const { api, gateway, server, delegate, ended, redis } = await setup({
    turn: (turn) => turn.message("hi"),
  });
  expect(await ended(await delegate("x"))).toMatchObject({ state: "completed" });
  await until(() => gateway.broker.handoff.polls.countAll() === 0, SLOW);
  expect(await redis.smembers("{errand:0}:push_agents")).toEqual(["remote"]);
  await api.agent("remote", {});
  const { body } = await api.delegate("remote", { task: "polled" });
  expect((await api.lease("remote")).body.leases).toMatchObject([{ delegation: { id: body.id } }]);
  expect(server.turns).toHaveLength(1);
});

test("a stored push agent that was never announced is found by the list, and announced by the next call", async () => {
  const server = await startA2aServer({ turn: (turn) => turn.message("hi") });
  const { url, gateway, another } = await startBroker(LOCAL);
  const api = client(url);
  const other = await another(LOCAL);
  const delivery = { mode: "push", url: server.url } as const;
  // As if a gateway had died between the two.
  for (const name of ["found", "told"]) {
    await gateway.broker.agents.put(name, agentRequestSchema.parse({ delivery }));
  }
  expect(gateway.broker.pushAgents.has("told")).toBe(false);
  await api.agent("told", { delivery });
  // Sooner than the other gateway reads the list by itself: every 15 s.
  await until(() => other.gateway.broker.pushAgents.has("told"), { timeoutMs: 12_000 });
  expect(gateway.broker.pushAgents.has("told")).toBe(true);
  const { body } = await api.delegate("found");
  expect(await watching(api).ended(body.id)).toMatchObject({ state: "completed" });
});

test("no wake is lost while the loops of many agents end, and nothing warns of their listeners", async () => {
  const warnings: string[] = [];
  const note = ({ name }: Error) => warnings.push(name);
  process.on("warning", note);
  onTestFinished(() => void process.off("warning", note));
  const server = await startA2aServer({ turn: (turn) => turn.message("hi") });
  const waitSeconds = 0.5;
  const { url } = await startBroker({ ...LOCAL, pushAgentWaitSeconds: waitSeconds });
  const api = client(url);
  const { ended } = watching(api);
  const names = Array.from({ length: 30 }, (_, n) => `a${n}`);
  await Promise.all(names.map((name) => api.agent(name, { delivery: { mode: "push", url: server.url } })));
  const both = names.map(async (name, n) => {
    const done = await ended((await api.delegate(name)).body.id);
    // The next work arrives about when the loop ends.
    const due = Date.parse(done.finished_at) + waitSeconds * 1000 - 150 + n * 10;
    await new Promise((resolve) => setTimeout(resolve, due - Date.now()));
    return ended((await api.delegate(name)).body.id);
  });
  for (const done of await Promise.all(both)) expect(done).toMatchObject({ state: "completed" });
  expect(warnings).not.toContain("MaxListenersExceededWarning");
});
