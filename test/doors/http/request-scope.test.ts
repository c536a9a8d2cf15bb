/** The scope of a waiting request, and the watch on its token. The end of the connection is in leaks.test.ts and hand-off.test.ts. */
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { expect, test } from "vitest";
import { AuthenticatedRequest } from "../../../src/doors/http/authenticated-request.ts";
import { Outflow } from "../../../src/doors/http/outflow.ts";
import { ShutdownHooks } from "../../../src/doors/http/shutdown-hooks.ts";
import { toPrincipal } from "../../../src/engine/access/access.ts";
import { startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

const ALICE = toPrincipal("caller:alice");

async function setup() {
  const { broker } = (await startBroker()).gateway;
  const ends = new ShutdownHooks();
  const outflow = new Outflow({ now: () => 0, onCut: () => {} });
  const incoming = new IncomingMessage(new Socket());
  const outgoing = new ServerResponse(incoming);
  const inbound = { requestId: "req_1", method: "POST", header: () => undefined, incoming, outgoing };
  const enter = async () => {
    const { token, id } = await broker.tokens.create({ principal: ALICE.text });
    const call = new AuthenticatedRequest(
      broker,
      inbound,
      await broker.tokens.identify(token),
      ends,
      outflow,
    );
    return { call, revoke: () => broker.tokens.revoke(id) };
  };
  return { broker, enter, ends, stop: () => ends.run({ handover: false }), ...(await enter()) };
}

test("each listener is called once: the first, further ones, and those of a signal created before or after", async () => {
  const { call, stop } = await setup();
  const hold = call.openScope(null);
  const calls: string[] = [];
  const leaver = (name: string) => ({ handleEvent: () => void calls.push(name) });
  const [first, second, third] = [leaver("first"), leaver("second"), leaver("third")];
  for (const one of [first, second, third]) hold.addEventListener("abort", one);
  hold.removeEventListener("abort", second);
  hold.signal.addEventListener("abort", () => calls.push("signal"));
  stop();
  stop();
  expect(calls).toEqual(["first", "third", "signal"]);
  expect([hold.aborted, hold.signal.aborted]).toEqual([true, true]);

  const other = call.openScope(null);
  other.addEventListener("abort", first);
  other.removeEventListener("abort", first);
  stop();
  expect(calls).toHaveLength(3);
  expect(other.signal.aborted).toBe(true);
});

test("a scope opened after the gateway began to stop ends at once", async () => {
  const { call, ends, stop } = await setup();
  stop();
  const hold = call.openScope(null);
  expect([hold.aborted, hold.signal.aborted]).toEqual([true, true]);
  hold.release();
  expect(ends.size).toBe(0);
});

test("a revoked token ends its own scopes only", async () => {
  const { call, enter, revoke } = await setup();
  const { call: another } = await enter();
  const [hold, released, others] = [call.openScope(null), call.openScope(null), another.openScope(null)];
  released.release();
  await revoke();
  expect([hold.aborted, released.aborted, others.aborted]).toEqual([true, false, false]);
  expect(() => hold.throwIfRevoked()).toThrow("revoked");
  expect(() => others.throwIfRevoked()).not.toThrow();
});

test("a second release has no effect", async () => {
  const { broker, call, ends } = await setup();
  const [one, other] = [call.openScope("polls"), call.openScope("polls")];
  one.release();
  one.release();
  expect([broker.quotas.inUse(ALICE, "polls"), ends.size]).toEqual([1, 1]);
  other.release();
  expect([broker.quotas.inUse(ALICE, "polls"), ends.size]).toEqual([0, 0]);
});

test("work that throws synchronously releases its scope", async () => {
  const { broker, call, ends } = await setup();
  const work = () => {
    throw new Error("at once");
  };
  expect(() => call.withScope(1, work)).toThrow("at once");
  await expect(call.withScope(1, async () => work())).rejects.toThrow("at once");
  expect([broker.quotas.inUse(ALICE, "polls"), ends.size]).toEqual([0, 0]);
});

test("an expired token is refused even while it is cached", async () => {
  const { broker } = (await startBroker()).gateway;
  const made = await broker.tokens.create({ principal: ALICE.text, expires_in_seconds: 0.3 });
  expect(await broker.tokens.identify(made.token)).toMatchObject({
    principal: ALICE.text,
    token_id: made.id,
  });
  await until(() => Date.parse(made.expires_at ?? "") < Date.now());
  await expect(broker.tokens.identify(made.token)).rejects.toThrow("expired");
});

test("a hand-over ends what waits, also what begins to wait later, and leaves the rest alone", async () => {
  const { call, ends } = await setup();
  const [waiting, brief] = [call.openScope(null), call.openScope(null, false)];
  ends.run({ handover: true });
  expect([waiting.aborted, brief.aborted]).toEqual([true, false]);
  const late = call.openScope(null);
  // It may look once before it ends.
  expect(late.aborted).toBe(false);
  await until(() => late.aborted);
  ends.run({ handover: false });
  expect(brief.aborted).toBe(true);
});
