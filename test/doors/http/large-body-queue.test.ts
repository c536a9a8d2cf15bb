import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { LargeBodyQueue } from "../../../src/doors/http/large-body-queue.ts";
import { Pipeline } from "../../../src/doors/http/pipeline.ts";
import type { Route } from "../../../src/doors/http/route.ts";
import { TableRequest } from "../../../src/doors/http/table-request.ts";
import { noContent } from "../../../src/doors/http/text-response.ts";
import { OPERATOR, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

/** Turns and times of a test. `cost`: what each request takes until it waits, ms. */
function started() {
  let now = 0;
  const settled: (() => void)[] = [];
  const turns: (() => void)[] = [];
  const pauses: { readonly ms: number; readonly run: () => void }[] = [];
  const queue = new LargeBodyQueue({
    now: () => now,
    settled: (run) => void settled.push(run),
    later: (run) => void turns.push(run),
    after: (ms, run) => void pauses.push({ ms, run }),
  });
  const order: string[] = [];
  const add = (owner: string, name: string, cost: number) => {
    const work = () => {
      order.push(name);
      now += cost;
    };
    const turn = queue.add(owner);
    if (turn === null) work();
    else void turn.then(work);
  };
  /** The rest of a turn of the event loop: all that may start in it does, and works. */
  const rest = async () => {
    for (;;) {
      await Promise.resolve().then(() => {});
      const next = settled.shift();
      if (!next) return;
      next();
    }
  };
  return {
    add,
    order,
    pauses,
    rest,
    /** The next turn; `others`: what others took in the one before, ms. */
    turn: async (others = 0) => {
      now += others;
      turns.shift()?.();
      await rest();
    },
  };
}

test.each([
  { takes: 9, pause: 36 },
  { takes: 10, pause: 100 },
  { takes: 40, pause: 400 },
])("after one that takes $takes ms there is a pause of $pause ms", async ({ takes, pause }) => {
  const { add, order, pauses, rest, turn } = started();
  add("a", "first", takes);
  add("a", "second", 1);
  await rest();
  await turn();
  expect([order, pauses.map(({ ms }) => ms)]).toEqual([["first"], [pause]]);
  pauses.shift()?.run();
  await rest();
  expect([order, pauses]).toEqual([["first", "second"], []]);
});

test("of those that take little, as many start in a turn as take 3 ms together", async () => {
  const { add, order, pauses, rest, turn } = started();
  for (let n = 1; n <= 8; n += 1) add("a", String(n), 1);
  await rest();
  expect(order.join("")).toBe("123");
  await turn();
  expect(order.join("")).toBe("123456");
  await turn();
  expect(order.join("")).toBe("12345678");
  await turn();
  add("a", "9", 1);
  expect([order.join(""), pauses]).toEqual(["123456789", []]);
});

test("principals take turns, and a stall of the process is no reason for a long pause", async () => {
  const { add, order, pauses, rest } = started();
  add("a", "a1", 5_000);
  add("a", "a2", 0);
  add("a", "a3", 0);
  add("b", "b1", 0);
  await rest();
  expect(pauses.map(({ ms }) => ms)).toEqual([500]);
  pauses.shift()?.run();
  await rest();
  expect(order).toEqual(["a1", "a2", "b1", "a3"]);
});

test("what others do in the same turn of the event loop is no reason for a pause", async () => {
  const { add, order, pauses, rest, turn } = started();
  add("a", "first", 1);
  add("a", "second", 1);
  await rest();
  await turn(40);
  expect([order, pauses]).toEqual([["first", "second"], []]);
});

test("measures what a request does until it waits, whether it started at once or not", async () => {
  const pauses: number[] = [];
  let now = 0;
  const queue = new LargeBodyQueue({
    now: () => now,
    after: (ms, run) => {
      pauses.push(ms);
      setImmediate(run);
    },
  });
  let others = setImmediate(function next() {
    now += 10;
    others = setImmediate(next);
  });
  onTestFinished(() => clearImmediate(others));
  let done = 0;
  const work = async (ms: number) => {
    await Promise.resolve();
    const turn = queue.add("a");
    if (turn !== null) await turn;
    // A part of it after a further microtask.
    await Promise.resolve();
    now += ms;
    done += 1;
  };
  await Promise.all([work(20), work(20)]);
  await until(() => pauses.length === 2);
  expect(pauses).toEqual([200, 200]);
  await Promise.all([work(1), work(1)]);
  expect([done, pauses]).toEqual([4, [200, 200]]);
});

test("of requests that arrive together, those whose large bodies take long start one at a time, the others at once", async () => {
  const { gateway } = await startBroker();
  const begunInTurn: string[][] = [[]];
  let tick = setImmediate(function next() {
    begunInTurn.push([]);
    tick = setImmediate(next);
  });
  onTestFinished(() => clearImmediate(tick));
  const route: Route = {
    id: "work",
    method: "POST",
    path: "/work",
    summary: "Notes the turn in which it begins",
    description: "",
    schemas: {},
    responses: {},
    async run(_request, raw) {
      const isLarge = JSON.stringify(raw.body).length > 16_384;
      begunInTurn.at(-1)?.push(isLarge ? "large" : "small");
      const until = performance.now() + (isLarge ? 4 : 0);
      while (performance.now() < until);
      return noContent();
    },
  };
  const stopping = new AbortController().signal;
  const settings = { host: "127.0.0.1", maxBodyBytes: 1_000_000, allowedOrigins: [], stopping };
  const pipeline = new Pipeline({ broker: gateway.broker, ...settings });
  const server = createServer((request, response) => {
    new TableRequest(pipeline, route, request, response).serve({}, "http://localhost/work");
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  let answers = 0;
  const sockets = Array.from({ length: 16 }, () => connect(port, "127.0.0.1"));
  for (const socket of sockets) {
    onTestFinished(() => void socket.destroy());
    socket.on("data", () => (answers += 1));
  }
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  const send = async (lengthOf: (at: number) => number) => {
    answers = 0;
    begunInTurn.length = 0;
    begunInTurn.push([]);
    for (const [at, socket] of sockets.entries()) {
      const body = JSON.stringify({ text: "x".repeat(lengthOf(at)) });
      const head = `POST /work HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${OPERATOR}\r\ncontent-type: application/json`;
      socket.write(`${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    }
    await until(() => answers === sockets.length);
  };
  // Until then, some connections are not accepted yet.
  await send(() => 10);
  await send((at) => (at % 2 === 0 ? 20_000 : 10));
  const most = (kind: string) =>
    begunInTurn.reduce((found, all) => Math.max(found, all.filter((one) => one === kind).length), 0);
  expect(most("large")).toBe(1);
  expect(most("small")).toBeGreaterThan(1);
  expect(begunInTurn.flat()).toHaveLength(sockets.length);
});

test("a body counts until its request has started, also if its client has left", async () => {
  const { gateway } = await startBroker();
  const stopping = new AbortController().signal;
  const settings = { host: "127.0.0.1", maxBodyBytes: 1_000_000, allowedOrigins: [], stopping };
  const pipeline = new Pipeline({ broker: gateway.broker, ...settings });
  let served = 0;
  const route: Route = {
    id: "work",
    method: "POST",
    path: "/work",
    summary: "Counts",
    description: "",
    schemas: {},
    responses: {},
    async run() {
      served += 1;
      return noContent();
    },
  };
  let closed = 0;
  const server = createServer((request, response) => {
    response.on("close", () => (closed += 1));
    new TableRequest(pipeline, route, request, response).serve({}, "http://localhost/work");
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const address = server.address();
  // Another request of the operator runs.
  expect(pipeline.limiter.begin("operator", 1_000)).toBeNull();
  const socket = connect(typeof address === "object" && address ? address.port : 0, "127.0.0.1");
  const body = JSON.stringify("x".repeat(20_000));
  const head = `POST /work HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${OPERATOR}\r\ncontent-type: application/json`;
  socket.write(`${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
  await until(() => pipeline.limiter.of("operator").waiting === 1);
  socket.destroy();
  await until(() => closed === 1);
  expect([served, pipeline.inflow.requestBytes()]).toEqual([0, body.length]);
  pipeline.limiter.end("operator", 1_000);
  await until(() => served === 1);
  expect(pipeline.inflow.requestBytes()).toBe(0);
});
