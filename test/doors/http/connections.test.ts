import { Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { Connection } from "../../../src/doors/http/connection.ts";
import { Connections } from "../../../src/doors/http/connections.ts";
import { OwnedBytes } from "../../../src/doors/http/owned-bytes.ts";
import { TrustedProxies } from "../../../src/doors/http/trusted-proxies.ts";
import { LIMITS } from "../../../src/schema/limits.ts";

function sockets(count: number, address = "192.0.2.1"): Socket[] {
  return Array.from({ length: count }, () => {
    const socket = new Socket();
    Object.defineProperty(socket, "remoteAddress", { value: address });
    onTestFinished(() => void socket.destroy());
    return socket;
  });
}

const open = (all: readonly Socket[]) => all.map(({ destroyed }) => !destroyed);

test("a full gateway closes the oldest connection without a token for a new one, and never a known one", () => {
  const connections = new Connections({ most: 3 });
  const all = sockets(6);
  const [a, b, c, d, e, f] = all as [Socket, Socket, Socket, Socket, Socket, Socket];
  for (const socket of [a, b, c]) expect(connections.add(socket)).toBe(true);
  connections.get(a)?.identify("caller:x");
  expect([connections.add(d), open(all)]).toEqual([true, [true, false, true, true, true, true]]);
  for (const socket of [c, d]) connections.get(socket)?.identify("caller:y");
  expect([connections.add(e), e.destroyed]).toEqual([false, true]);
  connections.delete(c);
  expect([connections.add(f), f.destroyed]).toEqual([true, false]);
});

test("the oldest unknown connections of an address are closed beyond its share, when they have had time", () => {
  const connections = new Connections({ mostUnknown: 2, proxies: new TrustedProxies(["10.0.0.1"]) });
  const [many, few, proxied] = [sockets(5), sockets(2, "192.0.2.2"), sockets(5, "10.0.0.1")];
  for (const socket of [...many, ...few, ...proxied]) connections.add(socket);
  const [first] = many;
  if (first) connections.get(first)?.identify("caller:x");
  connections.check();
  expect([...open(many), ...open(few), ...open(proxied)]).not.toContain(false);
  connections.check();
  expect(open(many)).toEqual([true, false, false, true, true]);
  expect([...open(few), ...open(proxied)]).not.toContain(false);
});

test("headers count for the address until a token is shown, and for nobody when they are over", () => {
  const headers = new OwnedBytes();
  const [socket] = sockets(1);
  if (!socket) throw new TypeError("no socket");
  const connection = new Connection(socket, headers);
  const served: number[] = [];
  const serve = (n: number) => () => void served.push(n);
  expect(connection.begin(1_000, serve(1))).toBe(true);
  expect(headers.of()).toBe(0);
  expect(connection.begin(5_000, serve(2))).toBe(true);
  expect(headers.of("address 192.0.2.1")).toBe(5_000 + 2_048);
  connection.identify("caller:x");
  expect([headers.of("address 192.0.2.1"), headers.of("caller:x")]).toEqual([0, 7_048]);
  connection.end();
  expect([served, headers.of("caller:x")]).toEqual([[1, 2], 5_000]);
  connection.end();
  expect(headers.of()).toBe(0);
  expect(connection.begin(9_000, serve(3))).toBe(true);
  expect(connection.begin(100, serve(4))).toBe(true);
  connection.release();
  expect([served, headers.of()]).toEqual([[1, 2, 3], 0]);
});

test("beyond the bytes of one owner, or of all, a connection takes no more", () => {
  const [one, two] = sockets(2);
  if (!one || !two) throw new TypeError("no sockets");
  const headers = new OwnedBytes();
  const connection = new Connection(one, headers);
  headers.add("caller:x", LIMITS.header_bytes.value - 5_000);
  connection.identify("caller:x");
  expect(connection.begin(100, () => {})).toBe(true);
  expect([connection.begin(1_000, () => {}), connection.begin(3_000, () => {})]).toEqual([true, false]);
  headers.add("caller:z", LIMITS.gateway_header_bytes.value - headers.of());
  const other = new Connection(two, headers);
  expect([other.begin(100, () => {}), other.begin(100, () => {})]).toEqual([true, false]);
});

test("behind a trusted proxy connections count for the client of their request, and idle ones for nobody", () => {
  const proxies = new TrustedProxies(["10.0.0.1"]);
  const connections = new Connections({ mostUnknown: 1, proxies });
  const all = sockets(4, "10.0.0.1");
  const begin = (socket: Socket, client: string, bytes = 5_000) => {
    const connection = connections.get(socket);
    if (!connection) throw new TypeError("no connection");
    connections.begin(connection, socket, { "x-forwarded-for": client });
    connection.begin(bytes, () => {});
    return connection;
  };
  for (const socket of all) connections.add(socket);
  const [a, b, c, d] = all as [Socket, Socket, Socket, Socket];
  begin(a, "203.0.113.1").identify("caller:x");
  connections.end(a);
  for (const socket of [a, b, c]) begin(socket, "203.0.113.1");
  begin(d, "203.0.113.2");
  expect(connections.headerBytes("address 203.0.113.1")).toBe(15_000);
  expect(connections.headerBytes("address 203.0.113.2")).toBe(5_000);
  begin(c, "203.0.113.1", 0);
  connections.get(c)?.identify("caller:y");
  connections.end(c);
  for (let n = 0; n < 2; n += 1) connections.check();
  expect(open(all)).toEqual([false, true, true, true]);
  connections.end(b);
  expect(connections.headerBytes("address 203.0.113.1")).toBe(0);
});

test("addresses without a token leave room for headers of principals, and one that shows a token has it", () => {
  const [one, two] = sockets(2);
  if (!one || !two) throw new TypeError("no sockets");
  const headers = new OwnedBytes();
  for (let n = 0; n < 4; n += 1)
    headers.add(`address 192.0.2.${n + 10}`, LIMITS.anonymous_header_bytes.value / 4);
  expect(new Connection(one, headers).begin(5_000, () => {})).toBe(false);
  expect(new Connection(one, headers).begin(100, () => {})).toBe(true);
  const known = new Connection(two, headers);
  known.identify("caller:x");
  expect(known.begin(5_000, () => {})).toBe(true);
});
