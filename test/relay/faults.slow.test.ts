/**
 * The relay, and servers that die, forget, refuse, flood or are silent. kill.test.ts has the tests that kill the
 * relay.
 */
import { expect, test, vi } from "vitest";
import { startA2aServer } from "../support/a2a-server.ts";
import { client, startBroker } from "../support/broker.ts";
import { SLOW, setupRelay as setup, startRelaying, watching } from "../support/relaying.ts";
import { allowStalls } from "../support/stalls.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 180_000 });

const never = () => new Promise<void>(() => undefined);

test.each([true, false])(
  "the relay waits for a killed server, whose task continued meanwhile (streaming %s)",
  async (streaming) => {
    const { delegate, ended, server, api, relayed } = await setup({
      streaming,
      turn(turn) {
        turn.begin();
        turn.artifact("out", "one ");
        turn.artifact("out", "two ", { append: true });
        return never();
      },
    });
    const id = await delegate("survive");
    await until(async () => (await api.get(id)).body.artifacts[0]?.parts.length === 2, SLOW);
    await server.kill();
    await until(() => relayed.notes.length > 0, SLOW);
    const [task = ""] = server.tasks();
    await server.store(task, {
      status: { state: "TASK_STATE_COMPLETED" },
      artifacts: [
        { artifactId: "out", name: "out", parts: [{ text: "one " }, { text: "two " }, { text: "three" }] },
      ],
    });
    await server.restart();
    const done = await ended(id);
    expect(done).toMatchObject({ state: "completed", attempt: 1 });
    expect(done.artifacts[0].parts).toEqual([{ text: "one " }, { text: "two " }, { text: "three" }]);
    expect(server.turns).toHaveLength(1);
  },
);

test("a stream that is cut is opened again, and nothing appears twice", async () => {
  let go = () => {};
  const { delegate, ended, server, api } = await setup({
    async turn(turn) {
      turn.begin();
      turn.artifact("out", "one ");
      await new Promise<void>((resolve) => {
        go = resolve;
      });
      turn.artifact("out", "two", { append: true, lastChunk: true });
      turn.status("COMPLETED", "done");
    },
  });
  const id = await delegate("stream");
  await until(async () => (await api.get(id)).body.artifacts.length === 1, SLOW);
  server.cut();
  await until(() => server.calls.includes("SubscribeToTask"), SLOW);
  go();
  const done = await ended(id);
  expect(done.artifacts[0].parts).toEqual([{ text: "one " }, { text: "two" }]);
  expect([done.state, server.turns.length]).toEqual(["completed", 1]);
});

test("a server that forgot its task costs an attempt, and the next attempt starts a new task", async () => {
  const { delegate, ended, server, api } = await setup(
    {
      turn(turn) {
        turn.begin();
        if (server.turns.length === 1) return never();
        turn.status("COMPLETED", "at last");
        return undefined;
      },
    },
    { agent: { backoff: { initial_ms: 0 } } },
  );
  const id = await delegate("remember");
  await until(() => server.turns.length === 1, SLOW);
  await until(async () => (await api.events(id)).body.events.length > 1, SLOW);
  await server.restart(true);
  expect(await ended(id)).toMatchObject({
    state: "completed",
    attempt: 2,
    reply: { parts: [{ text: "at last" }] },
  });
  expect(server.tasks()).toHaveLength(2);
  const { body } = await api.events(id);
  expect(body.events.find((event: { status?: string }) => event.status === "retrying")).toMatchObject({
    error: { code: "remote_task_lost", retryable: true },
  });
});

test("a server that is not running yet costs no attempt", async () => {
  const broker = await startBroker();
  const server = await startA2aServer({ turn: (turn) => turn.message("here") });
  await server.kill();
  const api = client(broker.url);
  await api.agent("remote");
  const relayed = startRelaying(broker.url, "remote", server.url);
  const { delegate, ended } = watching(api);
  const id = await delegate("wait");
  const released = await until(() => relayed.events.find(({ type }) => type === "released"), SLOW);
  expect(released).toMatchObject({ reason: expect.stringContaining("cannot be reached") });
  await server.restart();
  expect(await ended(id)).toMatchObject({ state: "completed", attempt: 1 });
});

test("credentials are sent to the server and appear nowhere else", async () => {
  const bearer = "remote-credential-canary";
  const options = { bearer, turn: (turn: { message: (text: string) => void }) => turn.message("in") };
  const { delegate, ended, relayed } = await setup(options, {
    headers: { authorization: `Bearer ${bearer}` },
  });
  const done = await ended(await delegate("enter"));
  expect(done.state).toBe("completed");
  expect(JSON.stringify([done, relayed.notes, relayed.events])).not.toContain("canary");
});

test("a server that refuses the credentials costs no attempt, and the release says so", async () => {
  const { delegate, relayed, api } = await setup({ bearer: "right", turn: (turn) => turn.message("in") });
  const id = await delegate("enter");
  const released = await until(() => relayed.events.find(({ type }) => type === "released"), SLOW);
  expect(released).toMatchObject({ reason: expect.stringMatching(/^http.* answered with HTTP 401, /) });
  expect((await api.get(id)).body).toMatchObject({ state: "submitted", attempt: 1 });
});

test("credentials are not sent to another origin that a card names", async () => {
  const target = await startA2aServer({ turn: (turn) => turn.message("in") });
  const { createServer } = await import("node:http");
  const card = await (await fetch(`${target.url}/.well-known/agent-card.json`)).text();
  const cards = createServer((_, answer) => answer.setHeader("content-type", "application/json").end(card));
  await new Promise<void>((resolve) => cards.listen(0, "127.0.0.1", resolve));
  const address = cards.address();
  const port = typeof address === "object" ? address?.port : 0;
  const broker = await startBroker();
  const api = client(broker.url);
  await api.agent("remote");
  startRelaying(broker.url, "remote", `http://127.0.0.1:${port}`, { headers: { "x-key": "secret" } });
  const { delegate, ended } = watching(api);
  expect((await ended(await delegate("enter"))).state).toBe("completed");
  cards.close();
  cards.closeAllConnections();
  expect(target.headers.map((headers) => headers["x-key"])).toEqual([undefined]);
});

test("output beyond the limit fails with payload_too_large, and the task is canceled", async () => {
  const { delegate, ended, server } = await setup({
    turn(turn) {
      turn.begin();
      for (let n = 0; n < 5; n += 1) turn.artifact("out", "x".repeat(900_000), { append: n > 0 });
      return never();
    },
  });
  expect(await ended(await delegate("flood"))).toMatchObject({
    state: "failed",
    error: { code: "payload_too_large" },
  });
  await until(() => server.canceled.length === 1, SLOW);
});

test.each([true, false])(
  "a message whose answer was lost starts no second task (streaming %s)",
  async (streaming) => {
    const { delegate, ended, server } = await setup({
      streaming,
      turn(turn) {
        turn.begin();
        turn.status("COMPLETED", "once");
      },
    });
    server.fault = (method) => (method.startsWith("Send") && server.turns.length === 0 ? "deaf" : undefined);
    expect(await ended(await delegate("once"))).toMatchObject({ state: "completed", attempt: 1 });
    expect(server.turns).toHaveLength(1);
  },
);

test("a flood of chunks and messages is sent at the broker's rate, and arrives whole", async () => {
  const { delegate, ended } = await setup({
    async turn(turn) {
      turn.begin();
      for (let n = 0; n < 200; n += 1) {
        turn.status("WORKING", `at ${n}`);
        turn.artifact("out", `${n},`, { append: n > 0 });
        // So that some arrive while others are in transit.
        if (n % 5 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      }
      turn.status("COMPLETED", "all of it");
    },
  });
  const id = await delegate("flood");
  const done = await ended(id);
  const text = done.artifacts[0].parts.map((part: { text: string }) => part.text).join("");
  expect(text).toBe(Array.from({ length: 200 }, (_, n) => `${n},`).join(""));
  const seconds = (Date.parse(done.finished_at) - Date.parse(done.created_at)) / 1000;
  // Two messages and four chunks a second; 400 were sent.
  expect(done.version).toBeLessThan(15 + 6 * seconds);
});

test("chunks that are sent together stay below the body limit", async () => {
  const { delegate, ended } = await setup({
    turn(turn) {
      turn.begin();
      for (let n = 0; n < 4; n += 1) turn.artifact("out", String(n).repeat(700_000), { append: n > 0 });
      turn.status("COMPLETED", "all of it");
    },
  });
  const done = await ended(await delegate("much"));
  expect(done).toMatchObject({ state: "completed", error: null });
  const parts = done.artifacts[0].parts.map((part: { text: string }) => [part.text[0], part.text.length]);
  expect(parts).toEqual([..."0123"].map((digit) => [digit, 700_000]));
});

test("chunks of one artifact count by their parts, without the name and metadata of each", async () => {
  const { delegate, ended } = await setup({
    turn(turn) {
      turn.begin();
      const metadata = { model: "m".repeat(50_000) };
      for (let n = 0; n < 100; n += 1) turn.artifact("out", `${n},`, { append: n > 0, metadata });
      turn.status("COMPLETED", "all of it");
    },
  });
  const done = await ended(await delegate("word by word"));
  expect([done.state, done.artifacts[0].parts.length]).toEqual(["completed", 100]);
});

test("an answered question is not asked again while the server still shows it", async () => {
  let go = () => {};
  const { delegate, ended, inState, server, api, relayed, url } = await setup({
    streaming: false,
    async turn(turn) {
      if (turn.number > 1) {
        await new Promise<void>((resolve) => {
          go = resolve;
        });
        return turn.status("COMPLETED", turn.text);
      }
      turn.begin();
      return turn.status("INPUT_REQUIRED", "Which?");
    },
  });
  const id = await delegate("choose");
  const asks = await inState(id, "input_required");
  await api.answer(id, asks.interrupt.id, { text: "that" });
  await until(() => server.turns.length === 2, SLOW);
  // The server has the answer and is silent; another relay continues.
  await relayed.stop();
  const looks = server.calls.filter((method) => method === "GetTask").length;
  startRelaying(url, "remote", server.url);
  await until(() => server.calls.filter((method) => method === "GetTask").length > looks + 3, SLOW);
  expect((await api.get(id)).body).toMatchObject({ state: "working", interrupt: null });
  go();
  expect(await ended(id)).toMatchObject({ state: "completed", reply: { parts: [{ text: "that" }] } });
  expect(server.turns).toHaveLength(2);
});

test("messages that a server sent while its stream was reopened are not missed (A2A 0.3)", async () => {
  let go = (_: string) => {};
  const { delegate, ended, server, api } = await setup({
    version: "0.3",
    async turn(turn) {
      turn.begin();
      turn.artifact("out", "one ");
      for (let said = ""; said !== "end"; ) {
        said = await new Promise<string>((resolve) => {
          go = resolve;
        });
        if (said !== "end") turn.artifact("out", said, { append: true });
      }
      turn.status("COMPLETED", "done");
    },
  });
  const id = await delegate("stream");
  await until(async () => (await api.get(id)).body.artifacts.length === 1, SLOW);
  // Between the read of the task and the opening of the stream.
  server.fault = (method) => {
    if (method === "tasks/resubscribe") {
      server.fault = () => undefined;
      go("two");
    }
    return undefined;
  };
  server.cut();
  await until(() => server.streams() === 2, SLOW);
  go("end");
  const done = await ended(id);
  expect(done.artifacts[0].parts).toEqual([{ text: "one " }, { text: "two" }]);
});

test("a relay that stops while the server hangs returns its work at once", async () => {
  const { createServer } = await import("node:http");
  let asked = 0;
  const silent = createServer(() => {
    asked += 1;
  });
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const address = silent.address();
  const port = typeof address === "object" ? address?.port : 0;
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("remote");
  const relayed = startRelaying(url, "remote", `http://127.0.0.1:${port}`);
  const id = await watching(api).delegate("x");
  await until(() => asked > 0, SLOW);
  const withStalls = allowStalls();
  const askedAt = performance.now();
  await relayed.stop();
  silent.close();
  silent.closeAllConnections();
  expect(performance.now() - askedAt).toBeLessThan(withStalls(8_000));
  expect(relayed.events).toContainEqual(expect.objectContaining({ type: "released", delegationId: id }));
});

test("an agent that thinks longer than a call may last can still answer with a message", async () => {
  const callMs = 1_000;
  const { delegate, ended, server } = await setup(
    {
      streaming: false,
      async turn(turn) {
        await new Promise((resolve) => setTimeout(resolve, 1.5 * callMs));
        turn.message("forty-two");
      },
    },
    { callMs },
  );
  const done = await ended(await delegate("think"));
  expect(done).toMatchObject({ state: "completed", attempt: 1, reply: { parts: [{ text: "forty-two" }] } });
  expect(server.turns).toHaveLength(1);
});

test("a task in a state that A2A does not define is a failure, and is canceled", async () => {
  const { delegate, ended, server } = await setup({
    turn(turn) {
      turn.begin();
      return never();
    },
  });
  const id = await delegate("x");
  await until(() => server.turns.length === 1, SLOW);
  const [task = ""] = server.tasks();
  await server.store(task, { status: { state: "TASK_STATE_UNSPECIFIED" } });
  server.cut();
  expect(await ended(id)).toMatchObject({ state: "failed", error: { code: "remote_error" } });
  await until(() => server.canceled.length === 1, SLOW);
});
