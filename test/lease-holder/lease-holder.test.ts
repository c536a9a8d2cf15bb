/** The lease holder over a transport of the test, on a clock that the test moves. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  type HolderOptions,
  LeaseHolder,
  type LeaseTransport,
  type Verdict,
} from "../../src/lease-holder/lease-holder.ts";
import { CutOffError } from "../../src/lease-holder/lost.ts";
import type { Message } from "../../src/schema/a2a.ts";
import { type HeartbeatInput, leaseSchema } from "../../src/schema/lease.ts";
import { sleep } from "../../src/util/timing.ts";
import { leaseLike } from "../client/stub-broker.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const LEASE_SECONDS = 30;
const AWAY = new Error("away");

class Transport implements LeaseTransport {
  readonly requests: HeartbeatInput[] = [];
  failure: Error | null = null;
  verdict: Verdict = { kind: "retry" };
  messages: readonly Message[] = [];
  /** How long a held heartbeat takes, ms. */
  takesMs = 0;
  longestRetryMs = 500;

  heartbeat = async (request: HeartbeatInput, { signal }: { readonly signal: AbortSignal }) => {
    this.requests.push(request);
    if (request.wait_seconds) await sleep(this.takesMs, signal);
    if (this.failure) throw this.failure;
    return { state: "working", messages: this.messages };
  };
  judge = (): Verdict => this.verdict;
}

function setup(options?: HolderOptions) {
  const transport = new Transport();
  const lease = leaseSchema.parse(leaseLike(LEASE_SECONDS));
  const holder = new LeaseHolder(transport, lease, performance.now(), options);
  return { transport, holder };
}

/** A holder whose held heartbeats take 10 s, as they do, and which the broker has not answered since 10 s. */
async function cutOffAt25s(options?: HolderOptions) {
  const { transport, holder } = setup(options);
  transport.takesMs = 10_000;
  void holder.keepAlive();
  await vi.advanceTimersByTimeAsync(25_000);
  expect(transport.requests).toMatchObject([
    { wait_seconds: 10 },
    { wait_seconds: 10 },
    { wait_seconds: 10 },
  ]);
  transport.failure = AWAY;
  transport.takesMs = 0;
  return { transport, holder };
}

test("a silent broker stops the handler after twice the length of the lease, and does not end the lease", async () => {
  const { transport, holder } = await cutOffAt25s();
  // The last answered heartbeat was sent at about 10 s.
  await vi.advanceTimersByTimeAsync(44_000);
  expect([holder.lost, holder.signal.aborted]).toEqual([null, false]);
  await vi.advanceTimersByTimeAsync(3_000);
  expect([holder.lost, holder.cutOff, holder.callSignal.aborted]).toEqual([null, true, false]);
  expect(holder.signal.reason).toBeInstanceOf(CutOffError);
  const sent = transport.requests.length;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(transport.requests.length).toBeGreaterThan(sent);
  expect(transport.requests.at(-1)).toEqual({});
  transport.verdict = { kind: "lost", reason: "expired" };
  await vi.advanceTimersByTimeAsync(1_000);
  expect([holder.lost, holder.callSignal.aborted]).toEqual(["expired", true]);
});

test("an answer within that time ends the silence", async () => {
  const { transport, holder } = await cutOffAt25s();
  await vi.advanceTimersByTimeAsync(43_000);
  transport.failure = null;
  await vi.advanceTimersByTimeAsync(1_000);
  transport.failure = AWAY;
  await vi.advanceTimersByTimeAsync(50_000);
  expect([holder.lost, holder.signal.aborted]).toEqual([null, false]);
  holder.close(true);
});

test("with keepRunning the handler runs on while the broker is silent", async () => {
  const { holder } = await cutOffAt25s({ keepRunning: true });
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect([holder.lost, holder.signal.aborted]).toEqual([null, false]);
  holder.close(true);
});

const wallClock = (ms: number) => vi.setSystemTime(Date.now() + ms);
test.each([
  {
    what: "a sleep, in which the monotonic clock stands still",
    jump: wallClock,
    ms: 40_000,
    stopsWithinMs: 7_000,
  },
  { what: "a sleep that is shorter than the lease", jump: wallClock, ms: 8_000, stopsWithinMs: 40_000 },
  { what: "a clock that is set back", jump: wallClock, ms: -3_600_000, stopsWithinMs: 47_000 },
])("$what stops the handler of a silent broker in time", async ({ jump, ms, stopsWithinMs }) => {
  const { transport, holder } = await cutOffAt25s();
  jump(ms);
  const sent = transport.requests.length;
  await vi.advanceTimersByTimeAsync(1_500);
  // A pause of the process: the heartbeat that was under way is repeated at once, because its connection may be dead.
  if (ms > 0) expect(transport.requests.length).toBeGreaterThan(sent);
  await vi.advanceTimersByTimeAsync(stopsWithinMs - 4_500);
  expect(holder.signal.aborted).toBe(false);
  await vi.advanceTimersByTimeAsync(4_000);
  expect(holder.cutOff).toBe(true);
});

test("after a sleep the broker's answer lets the handler go on", async () => {
  const { transport, holder } = await cutOffAt25s();
  vi.setSystemTime(Date.now() + 3_600_000);
  transport.failure = null;
  await vi.advanceTimersByTimeAsync(60_000);
  expect([holder.lost, holder.signal.aborted]).toEqual([null, false]);
  holder.close(true);
});

test("the first heartbeat is repeated until the broker answers, and the reason is the broker's", async () => {
  const { transport, holder } = setup();
  transport.failure = AWAY;
  const confirmed = holder.confirm();
  await vi.advanceTimersByTimeAsync(120_000);
  expect([holder.lost, transport.requests.length > 20]).toEqual([null, true]);
  transport.failure = null;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await confirmed).toBe(true);

  const other = setup();
  other.transport.failure = AWAY;
  const refused = other.holder.confirm();
  await vi.advanceTimersByTimeAsync(7_000);
  other.transport.verdict = { kind: "lost", reason: "released" };
  await vi.advanceTimersByTimeAsync(1_000);
  expect([await refused, other.holder.lost]).toEqual([false, "released"]);

  const stopped = setup();
  stopped.transport.failure = AWAY;
  const ended = stopped.holder.confirm();
  stopped.holder.stopHandler(AWAY);
  await vi.advanceTimersByTimeAsync(1_000);
  expect([await ended, stopped.holder.lost]).toEqual([true, null]);
});

test("at most two updates of progress a second are sent: the first, then the latest", async () => {
  const { transport, holder } = setup();
  for (let n = 0; n < 100; n += 1) {
    holder.progress({ message: String(n) });
    await vi.advanceTimersByTimeAsync(10);
  }
  await vi.advanceTimersByTimeAsync(1_000);
  expect(transport.requests.map(({ progress }) => progress?.message)).toEqual(["0", "49", "99"]);
});

test("a follow-up that the broker repeats is delivered once, and marked as seen at once", async () => {
  const { transport, holder } = setup();
  const received: string[] = [];
  holder.followUps.listen(({ messageId }) => received.push(messageId));
  transport.messages = [{ messageId: "f1", role: "ROLE_USER", parts: [{ text: "faster" }] }];
  void holder.keepAlive();
  await vi.advanceTimersByTimeAsync(100);
  expect(received).toEqual(["f1"]);
  expect(transport.requests).toMatchObject([{}, { seen: "f1" }]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(received).toEqual(["f1"]);
  holder.close(true);
});

test("a call is repeated until it succeeds, is refused, runs out of time, or the lease is lost", async () => {
  const { transport, holder } = setup();
  let tries = 0;
  const failing = async (): Promise<never> => {
    tries += 1;
    throw AWAY;
  };
  const succeeds = holder.retry(async () => (tries < 3 ? failing() : "taken"));
  await vi.advanceTimersByTimeAsync(2_000);
  expect([await succeeds, tries]).toEqual(["taken", 3]);

  const until = performance.now() + 1_000;
  const late = expect(holder.retry(failing, { until: () => until })).rejects.toBe(AWAY);
  await vi.advanceTimersByTimeAsync(2_000);
  await late;

  transport.verdict = { kind: "refused" };
  await expect(holder.retry(failing)).rejects.toBe(AWAY);
  transport.verdict = { kind: "lost", reason: "canceled" };
  await expect(holder.retry(failing)).rejects.toMatchObject({ reason: "canceled" });
  expect(holder.lost).toBe("canceled");
});
