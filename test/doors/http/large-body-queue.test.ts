import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createDirectHandler } from "../../../src/doors/http/direct.ts";
import { LargeBodyQueue } from "../../../src/doors/http/large-body-queue.ts";
import { Pipeline } from "../../../src/doors/http/pipeline.ts";
import type { Route } from "../../../src/doors/http/route.ts";
import { noContent } from "../../../src/doors/http/text-response.ts";
import { OPERATOR, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

/** Turns and times of a test. `cost`: what each request takes, ms. */
function begun() {
  let now = 0;
  const turns: (() => void)[] = [];
  const pauses: { readonly ms: number; readonly run: () => void }[] = [];
  const queue = new LargeBodyQueue({
    now: () => now,
    later: (run) => void turns.push(run),
    after: (ms, run) => void pauses.push({ ms, run }),
  });
  const order: string[] = [];
  const begin = (owner: string, name: string, cost: number) => {
    const work = () => {
      order.push(name);
      now += cost;
    };
    const turn = queue.add(owner);
    if (turn === null) work();
    else void turn.then(work);
  };
  return {
    begin,
    order,
    pauses,
    /** The next turn of the event loop: one that begins in it works before the turn after it. */
    turn: async () => {
      turns.shift()?.();
      await Promise.resolve();
    },
  };
}

test("one begins in a turn, and pauses for as long as it took before the next", async () => {
  const { begin, order, pauses, turn } = begun();
  begin("a", "first", 40);
  begin("a", "second", 1);
  begin("a", "third", 1);
  expect(order).toEqual(["first"]);
  await turn();
  expect([order, pauses.map(({ ms }) => ms)]).toEqual([["first"], [40]]);
  pauses.shift()?.run();
  await turn();
  // A short one needs no pause, but the next one waits for its turn.
  expect(pauses).toEqual([]);
  expect(order).toEqual(["first", "second", "third"]);
});

test("the next one begins only in the turn after a short one", async () => {
  const { begin, order, turn } = begun();
  begin("a", "first", 1);
  begin("a", "second", 1);
  begin("a", "third", 1);
  expect(order).toEqual(["first"]);
  await turn();
  expect(order).toEqual(["first", "second"]);
  await turn();
  expect(order).toEqual(["first", "second", "third"]);
});

test("principals take turns, and a stall of the process is no reason for a long pause", async () => {
  const { begin, order, pauses, turn } = begun();
  begin("a", "a1", 5_000);
  begin("a", "a2", 1);
  begin("a", "a3", 1);
  begin("b", "b1", 1);
  await turn();
  expect(pauses.map(({ ms }) => ms)).toEqual([250]);
  pauses.shift()?.run();
  for (let n = 0; n < 4; n += 1) await turn();
  expect(order).toEqual(["a1", "a2", "b1", "a3"]);
});

test("of requests that arrive together, those with large bodies begin one at a time, the others at once", async () => {
  const { gateway } = await startBroker();
  const begunInTurn: string[][] = [[]];
  let tick = setImmediate(function next() {
    begunInTurn.push([]);
    tick = setImmediate(next);
  });
  onTestFinished(() => clearImmediate(tick));
  const route: Route = {
    method: "POST",
    path: "/work",
    summary: "Notes the turn in which it begins.",
    schemas: {},
    responses: {},
    async run(_request, raw) {
      begunInTurn.at(-1)?.push(JSON.stringify(raw.body).length > 16_384 ? "large" : "small");
      return noContent();
    },
  };
  const stopping = new AbortController().signal;
  const settings = { host: "127.0.0.1", maxBodyBytes: 1_000_000, allowedOrigins: [], stopping };
  const direct = createDirectHandler(new Pipeline({ broker: gateway.broker, ...settings }), [route]);
  const server = createServer((request, response) => void direct(request, response)).listen(0, "127.0.0.1");
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
    Math.max(...begunInTurn.map((all) => all.filter((one) => one === kind).length));
  expect(most("large")).toBe(1);
  expect(most("small")).toBeGreaterThan(1);
  expect(begunInTurn.flat()).toHaveLength(sockets.length);
});
