import { once } from "node:events";
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { AddressQueue } from "../../../src/doors/http/address-queue.ts";
import { Connection } from "../../../src/doors/http/connection.ts";
import { listen } from "../../../src/doors/http/listener.ts";
import { until } from "../../support/until.ts";

/** Turns that the test runs. */
function begun() {
  const next: (() => void)[] = [];
  const served: string[] = [];
  const queue = new AddressQueue((turn) => void next.push(turn));
  const begin = (address: string, count: number, bearsToken = false) => {
    for (let n = 0; n < count; n += 1) queue.add(address, bearsToken, () => served.push(address) > 0);
  };
  /** Who is served in the next turn. */
  const run = () => {
    const before = served.length;
    next.shift()?.();
    return served.slice(before).join("");
  };
  return { begin, run, served, next, queue };
}

test("four requests begin in a turn, one address after the other, and each begins once", () => {
  const { begin, run, served } = begun();
  begin("a", 4);
  expect(served.join("")).toBe("aaaa");
  begin("a", 9);
  begin("b", 2);
  begin("c", 1);
  expect([run(), run(), run(), run()]).toEqual(["abca", "baaa", "aaaa", ""]);
  begin("d", 1);
  expect(served.at(-1)).toBe("d");
});

test("a request with a token whose check is all that it costs takes a quarter of the place", () => {
  const { begin, run, served, next } = begun();
  begin("a", 40, true);
  expect(served).toHaveLength(16);
  expect([run().length, run().length, next.length]).toEqual([16, 8, 1]);
});

test("what costs nothing yet begins at once, and turns end by themselves", () => {
  const { begin, run, next } = begun();
  begin("a", 1);
  expect(next).toHaveLength(1);
  run();
  expect(next).toHaveLength(0);
});

test("a request whose client has left costs nothing", () => {
  const { begin, run, queue } = begun();
  begin("a", 4);
  for (let n = 0; n < 1_000; n += 1) queue.add("gone", false, () => false);
  begin("b", 4);
  expect(run()).toBe("bbbb");
});

/** A listener that notes how many requests begin in each turn of the event loop; `isKnown`: their connections are. */
async function noted(isKnown: boolean) {
  const perTurn = [0];
  // It runs first in each turn, so that what the others begin in theirs is counted for it.
  let tick = setImmediate(function next() {
    perTurn.push(0);
    tick = setImmediate(next);
  });
  onTestFinished(() => clearImmediate(tick));
  const listener = await listen(
    {
      serve: (request, response) => {
        perTurn.push((perTurn.pop() ?? 0) + 1);
        if (isKnown) Connection.of(request.socket)?.identify("caller:x");
        response.end("ok");
      },
    },
    { host: "127.0.0.1", port: 0, now: () => 0 },
  );
  onTestFinished(() => listener.close(0));
  return { port: listener.port, perTurn };
}

test.each([
  { isKnown: false, headers: "", most: 4 },
  { isKnown: false, headers: "authorization: Bearer x\r\n", most: 16 },
  { isKnown: true, headers: "", most: 4 },
  { isKnown: true, headers: "authorization: Bearer x\r\n", most: 40 },
])("of 40 requests that arrive together ($isKnown, '$headers'), $most begin in a turn", async (given) => {
  const { port, perTurn } = await noted(given.isKnown);
  let answers = 0;
  const sockets = Array.from({ length: 40 }, () => connect(port, "127.0.0.1"));
  for (const socket of sockets) {
    onTestFinished(() => void socket.destroy());
    socket.on("data", () => (answers += 1));
  }
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  const text = `GET / HTTP/1.1\r\nhost: localhost\r\n${given.headers}\r\n`;
  const send = async () => {
    perTurn.length = 0;
    perTurn.push(0);
    const before = answers;
    for (const socket of sockets) socket.write(text);
    await until(() => answers === before + 40);
  };
  await send();
  await send();
  expect(Math.max(...perTurn)).toBe(given.most);
});
