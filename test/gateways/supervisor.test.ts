/** The supervisor with gateways that only pretend: what it does when they end, by a clock of the test. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ChildEnd, Forked } from "../../src/gateways/child.ts";
import type { Order, Report } from "../../src/gateways/messages.ts";
import { Siblings } from "../../src/gateways/siblings.ts";
import { GatewayStartError, Supervisor } from "../../src/gateways/supervisor.ts";
import { createLog } from "../../src/telemetry/log.ts";

class Pretender implements Forked {
  readonly pid: number;
  readonly orders: Order[] = [];
  isGone = false;
  #receive: (message: unknown) => void = () => {};
  #end: (end: ChildEnd) => void = () => {};

  constructor(pid: number) {
    this.pid = pid;
  }

  send(order: Order): void {
    this.orders.push(order);
    if (order.type !== "stop") return;
    this.report({ type: "stopping", busy: 1 });
    this.end(0);
  }

  kill(): void {
    this.end(null);
  }

  onMessage(receive: (message: unknown) => void): void {
    this.#receive = receive;
  }

  onEnd(callback: (end: ChildEnd) => void): void {
    this.#end = callback;
  }

  report(report: Report): void {
    this.#receive(report);
  }

  ready(): void {
    this.report({ type: "hello" });
    this.report({ type: "ready", port: 4180, gateway: `name${this.pid}` });
  }

  end(code: number | null): void {
    this.isGone = true;
    this.#end({ code, signal: code === null ? "SIGKILL" : null });
  }
}

function supervise(count: number) {
  const children: Pretender[] = [];
  const lines: { msg: string; [field: string]: unknown }[] = [];
  const supervisor = new Supervisor({
    count,
    setup: { port: 4180, redis: { socket: "/none" }, operator_token: "secret" },
    fork: () => {
      const child = new Pretender(children.length + 1);
      children.push(child);
      return child;
    },
    log: createLog("info", (line) => lines.push(JSON.parse(line))),
    onRedisLost: () => {},
  });
  const child = (pid: number): Pretender => {
    const found = children[pid - 1];
    if (!found) throw new Error(`no process ${pid}`);
    return found;
  };
  return { supervisor, children, child, lines };
}

/** Lets promises settle, and timers fire that are due by then. */
const pass = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

async function started(count: number) {
  const all = supervise(count);
  const start = all.supervisor.start();
  for (let pid = 1; pid <= count; pid += 1) {
    await pass();
    all.child(pid).ready();
  }
  expect(await start).toBe(4180);
  return all;
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("delays grow while gateways do not last, and start over after one that did", async () => {
  const { child, children, lines } = await started(1);
  const delays: unknown[] = [];
  const end = async () => {
    child(children.length).end(1);
    await pass();
    const delay = lines.at(-1)?.again_in_ms;
    delays.push(delay);
    await pass(Number(delay));
    child(children.length).ready();
    await pass();
  };
  for (let n = 0; n < 11; n += 1) await end();
  expect(delays).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]);
  await pass(9_000);
  await end();
  await pass(10_000);
  await end();
  expect(delays.slice(-2)).toEqual([30_000, 100]);
});

test("while the first gateway serves, another one that finds Redis away is started again", async () => {
  const { supervisor, child, children, lines } = supervise(2);
  const start = supervisor.start();
  await pass();
  child(1).ready();
  await pass();
  child(2).end(75);
  await pass(99);
  expect(children).toHaveLength(2);
  expect(lines.at(-1)).toMatchObject({ gateway: 2, code: 75, again_in_ms: 100 });
  await pass(1);
  child(3).ready();
  expect(await start).toBe(4180);
});

test("a gateway that dies while another one still starts is started again", async () => {
  const { supervisor, child, children } = supervise(2);
  const start = supervisor.start();
  await pass();
  child(1).ready();
  await pass();
  child(1).end(null);
  child(2).ready();
  expect(await start).toBe(4180);
  await pass(100);
  expect(children).toHaveLength(3);
});

test("another gateway with a wrong configuration ends the start", async () => {
  const { supervisor, child } = supervise(2);
  const start = expect(supervisor.start()).rejects.toThrow(GatewayStartError);
  await pass();
  child(1).ready();
  await pass();
  child(2).end(78);
  await start;
});

test("a gateway that died is replaced after a delay, and a live one withdraws its presence", async () => {
  const { child, children, lines } = await started(2);
  child(1).end(null);
  await pass(99);
  expect(children).toHaveLength(2);
  expect(child(2).orders).toContainEqual({ type: "died", gateway: "name1" });
  expect(lines.at(-1)).toMatchObject({ gateway: 1, signal: "SIGKILL", again_in_ms: 100, level: "error" });
  await pass(1);
  child(3).ready();
  await pass();
  expect(child(2).orders.at(-1)).toMatchObject({
    siblings: [
      { number: 1, pid: 3, state: "ready", restarts: 1 },
      { number: 2, pid: 2, state: "ready", restarts: 0 },
    ],
  });
  // It did not last: the next delay is longer.
  child(3).end(1);
  await pass(199);
  expect(children).toHaveLength(3);
  await pass(1);
  expect(children).toHaveLength(4);
});

test("a first start that fails ends everything with its exit code", async () => {
  const { supervisor, child, children } = supervise(3);
  const start = supervisor.start();
  start.catch(() => {});
  await pass();
  child(1).end(75);
  await expect(start).rejects.toEqual(new GatewayStartError(75));
  expect(children).toHaveLength(1);
});

test("a gateway that is killed while it starts is started again after growing pauses, until a stop", async () => {
  const { supervisor, child, children, lines } = supervise(2);
  const start = supervisor.start();
  await pass();
  child(1).end(null);
  await pass(99);
  expect(children).toHaveLength(1);
  await pass(1);
  child(2).end(null);
  await pass(199);
  expect(children).toHaveLength(2);
  expect(lines.at(-1)).toMatchObject({ gateway: 1, signal: "SIGKILL", again_in_ms: 200 });
  await supervisor.stop(7_500).stopped;
  expect(await start).toBeNull();
  await pass(60_000);
  expect(children).toHaveLength(2);
});

test("a successor with a wrong configuration does not end the others; without any left, all ends with 78", async () => {
  const { supervisor, child, children, lines } = await started(2);
  let failure: unknown;
  supervisor.failed.catch((error: unknown) => {
    failure = error;
  });
  child(1).end(1);
  await pass(100);
  child(3).end(78);
  await pass(29_000);
  expect(children).toHaveLength(3);
  expect(lines.at(-1)).toMatchObject({ gateway: 1, code: 78, again_in_ms: 30_000 });
  child(2).end(1);
  await pass(100);
  expect(failure).toBeUndefined();
  child(4).end(78);
  await pass();
  expect(failure).toEqual(new GatewayStartError(78));
  await pass(60_000);
  expect(children).toHaveLength(4);
});

test("gateways are replaced only when all successors are ready", async () => {
  const { supervisor, child, children, lines } = await started(2);
  const roll = supervisor.roll();
  await pass();
  child(3).ready();
  await pass();
  expect(children).toHaveLength(4);
  expect(child(1).isGone || child(2).isGone).toBe(false);
  child(4).ready();
  await roll;
  expect([1, 2, 3, 4].map((pid) => child(pid).isGone)).toEqual([true, true, false, false]);
  expect(child(1).orders).toContainEqual({ type: "stop", handover: true });
  expect(lines.at(-1)?.msg).toBe("gateways replaced");

  // One that cannot start leaves everything as it was.
  const failing = supervisor.roll();
  await pass();
  child(5).ready();
  await pass();
  child(6).end(78);
  await failing;
  expect([3, 4, 5].map((pid) => child(pid).isGone)).toEqual([false, false, true]);
  expect(lines.at(-1)).toMatchObject({ level: "error", gateway: 2, code: 78 });
  expect(children).toHaveLength(6);
});

test("a gateway that dies while its successor starts is replaced by it, or again if the successor fails", async () => {
  const { supervisor, child, children } = await started(1);
  const roll = supervisor.roll();
  await pass();
  child(1).end(null);
  await pass(50);
  child(2).ready();
  await roll;
  await beat([child(2)], 60);
  expect(children).toHaveLength(2);
  const failing = supervisor.roll();
  await pass();
  child(2).end(null);
  child(3).end(1);
  await failing;
  await pass(30_000);
  expect(children).toHaveLength(4);
});

test("a SIGTERM to one gateway gives it a successor first", async () => {
  const { child, children } = await started(2);
  child(2).report({ type: "replace_me" });
  child(2).report({ type: "replace_me" });
  await pass();
  expect(child(2).isGone).toBe(false);
  child(3).ready();
  await pass();
  expect(child(2).isGone).toBe(true);
  expect(child(1).isGone).toBe(false);
  expect(children).toHaveLength(3);
});

test("a stop stops all, kills what has not started, and starts nothing more", async () => {
  const { supervisor, child, children } = await started(2);
  child(1).end(null);
  await pass(100);
  const { busy, stopped } = supervisor.stop(7_500);
  expect(await busy).toBe(1);
  await stopped;
  expect(children.every(({ isGone }) => isGone)).toBe(true);
  await pass(60_000);
  expect(children).toHaveLength(3);
});

/** Lets seconds pass in which only these gateways report that they are alive. */
async function beat(alive: readonly Pretender[], seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 5) {
    for (const child of alive) child.report({ type: "alive" });
    await pass(5_000);
  }
}

test("a gateway whose event loop stands still is killed after half a minute, and started again", async () => {
  const { child, children, lines } = await started(2);
  await beat([child(1), child(2)], 120);
  await beat([child(2)], 25);
  expect(child(1).isGone).toBe(false);
  await beat([child(2)], 10);
  expect([child(1).isGone, child(2).isGone]).toEqual([true, false]);
  expect(lines.at(-2)).toMatchObject({
    level: "error",
    gateway: 1,
    pid: 1,
    msg: "gateway does not respond and is killed",
  });
  expect(lines.at(-1)).toMatchObject({ gateway: 1, signal: "SIGKILL", again_in_ms: 100 });
  expect(child(2).orders).toContainEqual({ type: "died", gateway: "name1" });
  await pass(100);
  expect(children).toHaveLength(3);
});

test("a gateway that hangs while it stops or starts is killed, too", async () => {
  const { supervisor, child, children } = await started(1);
  child(1).report({ type: "alive" });
  child(1).send = () => {};
  const roll = supervisor.roll();
  await pass();
  child(2).ready();
  await beat([child(2)], 35);
  expect(child(1).isGone).toBe(true);
  await roll;
  // A process that never reports anything, in a place of its own.
  child(2).end(null);
  await pass(100);
  await pass(55_000);
  expect(child(3).isGone).toBe(false);
  await pass(15_000);
  expect(child(3).isGone).toBe(true);
  expect(children).toHaveLength(4);
});

test("a gateway is left alone after a stall of the supervisor", async () => {
  const { child } = await started(1);
  // A minute in which no timer ran: one check, and the beats are read after it.
  vi.setSystemTime(Date.now() + 60_000);
  await pass(5_000);
  await beat([child(1)], 120);
  expect(child(1).isGone).toBe(false);
});

test("a gateway reports that it is alive from its setup on", async () => {
  const reports: Report[] = [];
  let order: (message: unknown) => void = () => {};
  const joined = Siblings.join({
    send: (report) => reports.push(report),
    onMessage: (receive) => {
      order = receive;
    },
    close: async () => {},
    onClose: () => {},
  });
  const setup = { type: "setup", number: 1, count: 2, port: 0, redis: { socket: "/none" } };
  for (let n = 0; n < 2; n += 1) order({ ...setup, operator_token: "secret" });
  await joined;
  await pass(10_000);
  expect(reports.map(({ type }) => type)).toEqual(["hello", "alive", "alive", "alive"]);
});

test("a start ends with 78 when the gateways that were ready are gone and a setting is wrong by now", async () => {
  const { supervisor, child } = supervise(2);
  const start = expect(supervisor.start()).rejects.toEqual(new GatewayStartError(78));
  await pass();
  child(1).ready();
  await pass();
  child(2).end(75);
  await pass(50);
  child(1).end(1);
  await pass(50);
  child(3).end(75);
  await pass(50);
  child(4).end(78);
  await start;
});
