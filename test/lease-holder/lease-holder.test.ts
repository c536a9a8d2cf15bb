/** The lease holder over a transport of the test, on a clock that the test moves. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LeaseHolder, type LeaseTransport, type Verdict } from "../../src/lease-holder/lease-holder.ts";
import { LeaseLostError } from "../../src/lease-holder/lost.ts";
import type { Message } from "../../src/schema/a2a.ts";
import { type HeartbeatInput, leaseSchema } from "../../src/schema/lease.ts";
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

  heartbeat = async (request: HeartbeatInput) => {
    this.requests.push(request);
    if (request.wait_seconds) await new Promise((resolve) => setTimeout(resolve, this.takesMs));
    if (this.failure) throw this.failure;
    return { messages: this.messages };
  };
  judge = (): Verdict => this.verdict;
}

function setup() {
  const transport = new Transport();
  const lease = leaseSchema.parse(leaseLike(LEASE_SECONDS));
  const holder = new LeaseHolder(transport, lease, performance.now());
  return { transport, holder };
}

test("a lease is valid for its length after the last heartbeat that was answered, then it is lost", async () => {
  const { transport, holder } = setup();
  transport.takesMs = 10_000;
  void holder.keepAlive();
  await vi.advanceTimersByTimeAsync(25_000);
  expect(transport.requests).toMatchObject([
    { wait_seconds: 10 },
    { wait_seconds: 10 },
    { wait_seconds: 10 },
  ]);
  transport.failure = AWAY;
  // The second one was sent at about 10 s.
  await vi.advanceTimersByTimeAsync(14_900);
  expect([holder.lost, holder.signal.aborted]).toEqual([null, false]);
  await vi.advanceTimersByTimeAsync(1_200);
  expect(holder.lost).toBe("expired");
  expect(holder.signal.reason).toBeInstanceOf(LeaseLostError);
  const sent = transport.requests.length;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(transport.requests).toHaveLength(sent);
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
