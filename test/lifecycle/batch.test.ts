/** Commands of one turn go to Redis together. That each keeps its meaning is tested by the walks of test/model. */
import { expect, test, vi } from "vitest";
import { LIMITS } from "../../src/schema/limits.ts";
import { client, startBroker } from "../support/broker.ts";

async function setup(shards = 1) {
  const { url, gateway, redis } = await startBroker({ shards });
  const api = client(url);
  for (const name of ["scout", "coder", "writer", "tester"]) await api.agent(name);
  const { broker } = gateway;
  const calls = vi.spyOn(broker.redis, "evalsha");
  const submit = (target: string, text = "do it") => {
    const id = broker.shards.newDelegationId(target);
    const message = JSON.stringify({ messageId: "m", role: "ROLE_USER", parts: [{ text }] });
    const moved = broker.writer.move({
      move: "submit",
      id,
      params: { target, delegator: "caller:alice", context_id: "ctx_1", priority: 5, ttl_ms: 60_000 },
      event: { priority: "5" },
      fields: { message },
      bytes: message.length,
    });
    return { id, moved };
  };
  /** How many commands each call of the script had. */
  const sizes = () => calls.mock.calls.map(([, keys, ...args]) => Number(args[Number(keys)]));
  return { broker, redis, submit, calls, sizes };
}

test("the commands of one turn are one call, up to 16", async () => {
  const { submit, sizes } = await setup();
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => submit("scout").moved));
  expect(outcomes.map(({ outcome }) => outcome.kind)).toEqual(Array.from({ length: 20 }, () => "ok"));
  expect(sizes()).toEqual([16, 4]);
});

test("large commands are not sent together", async () => {
  const { submit, sizes } = await setup();
  const text = "x".repeat(150 * 1024);
  await Promise.all([submit("scout", text).moved, submit("scout", text).moved, submit("scout").moved]);
  expect(sizes()).toEqual([1, 2]);
});

test("commands for different shards are not sent together", async () => {
  const { broker, submit, sizes } = await setup(2);
  const targets = ["scout", "coder", "writer", "tester"];
  const shards = new Set(targets.map((target) => broker.shards.indexOfAgent(target)));
  expect(shards.size).toBe(2);
  await Promise.all(targets.map((target) => submit(target).moved));
  expect(sizes()).toHaveLength(2);
  expect(sizes().reduce((sum, size) => sum + size, 0)).toBe(4);
});

test("a command that fails does not affect the others of its call", async () => {
  const { broker, redis, submit, sizes } = await setup();
  const broken = broker.shards.newDelegationId("scout");
  await redis.set(`{errand:0}:d:${broken}`, "not a record");
  const cancel = (id: string) => broker.writer.move({ move: "cancel", id });
  const first = submit("scout");
  await first.moved;
  const [one, two, three] = await Promise.allSettled([
    cancel(broken),
    cancel(first.id),
    cancel(broker.shards.newDelegationId("scout")),
  ]);
  expect(one).toMatchObject({
    status: "rejected",
    reason: { message: expect.stringContaining("WRONGTYPE") },
  });
  expect(two).toMatchObject({ value: { outcome: { kind: "ok", state: "canceled" } } });
  expect(three).toMatchObject({ value: { outcome: { kind: "missing" } } });
  expect(sizes()).toEqual([1, 3]);
});

test("when the call fails, each of its commands does", async () => {
  const { broker, submit, calls } = await setup();
  calls.mockRejectedValueOnce(new Error("Connection is closed."));
  const results = await Promise.allSettled([submit("scout").moved, submit("scout").moved]);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect((await submit("scout").moved).outcome.kind).toBe("ok");
  expect(broker.writer.underWay("any")).toBeUndefined();
});

test("commands for one delegation run in the order in which they came", async () => {
  const { broker, submit } = await setup();
  const [one, other, third] = [submit("scout"), submit("scout"), submit("scout")];
  await Promise.all([one.moved, other.moved, third.moved]);
  const cancel = (id: string) => broker.writer.move({ move: "cancel", id });
  // Loads the script.
  await cancel(third.id);
  const message = JSON.stringify({ messageId: "m2", role: "ROLE_USER", parts: [{ text: "and this" }] });
  // A message may grow the delegation, so its script is another one. The first cancel has no part in this.
  const moves = [
    cancel(other.id),
    broker.writer.move({
      move: "message",
      id: one.id,
      params: { message_id: "m2", message_hash: "h" },
      history: [message],
    }),
    cancel(one.id),
  ];
  const results = await Promise.all(moves);
  expect(results.map(({ outcome }) => outcome.kind)).toEqual(["ok", "ok", "ok"]);
});

test("two moves of one delegation are one step: the second one only if the first one succeeds", async () => {
  const { broker, submit, sizes } = await setup();
  const made = submit("scout");
  await made.moved;
  const message = (name: string) => ({
    move: "message" as const,
    id: made.id,
    params: { message_id: name, message_hash: name },
    history: [JSON.stringify({ messageId: name, role: "ROLE_USER", parts: [{ text: name }] })],
  });
  const cancel = { move: "cancel" as const, id: made.id, read: true };
  const redrive = { move: "redrive" as const, id: made.id, params: { new_id: "dlg_0_x" } };

  const refused = await broker.writer.moveBoth(redrive, cancel);
  expect([refused?.first.outcome.kind, refused?.second]).toEqual(["state", null]);
  const half = await broker.writer.moveBoth(message("one"), redrive);
  expect([half?.first.outcome.kind, half?.second]).toEqual(["ok", null]);
  const [both, after] = await Promise.all([
    broker.writer.moveBoth(message("two"), cancel),
    broker.writer.move(message("three")),
  ]);
  expect(both?.first.outcome).toMatchObject({ kind: "ok", move: "message" });
  expect(both?.second?.outcome).toMatchObject({ kind: "ok", state: "canceled" });
  expect(both?.second?.record?.get("version")).toBe(4);
  expect(after.outcome.kind).toBe("state");
  expect(sizes().slice(-1)).toEqual([2]);
});

test("an error in the second move leaves the first one as it is", async () => {
  const { broker, redis, submit } = await setup();
  const made = submit("scout");
  await made.moved;
  await redis.set(`{errand:0}:d:${made.id}:history`, "not a list");
  const adopt = { move: "adopt" as const, id: made.id, params: { child_id: "dlg_0_child" } };
  const both = await broker.writer.moveBoth(adopt, {
    move: "message",
    id: made.id,
    params: { message_id: "m", message_hash: "h" },
    history: ["{}"],
  });
  expect([both?.first.outcome.kind, both?.second]).toEqual(["ok", null]);
  expect(await redis.smembers(`{errand:0}:d:${made.id}:children`)).toEqual(["dlg_0_child"]);
});

test("two moves that exceed the size of the delegation together are both refused", async () => {
  const { broker, submit } = await setup();
  const made = submit("scout");
  await made.moved;
  const message = (name: string, text: string) => ({
    move: "message" as const,
    id: made.id,
    params: { message_id: name, message_hash: name },
    history: [JSON.stringify({ messageId: name, role: "ROLE_USER", parts: [{ text }] })],
    read: true,
  });
  const small = message("small", "x");
  const large = message("large", "x".repeat(LIMITS.delegation_bytes.value - 150));
  const both = await broker.writer.moveBoth(small, large);
  expect([both?.first.outcome.kind, both?.first.record?.get("version"), both?.second]).toEqual([
    "too_large",
    1,
    null,
  ]);
  expect((await broker.writer.move(small)).outcome.kind).toBe("ok");
});

test("when Redis has no memory for two moves, neither is made", async () => {
  const { broker, submit, calls } = await setup();
  const made = submit("scout");
  await made.moved;
  const text = "OOM command not allowed when used memory > 'maxmemory'.";
  calls.mockRejectedValueOnce(Object.assign(new Error(text), { name: "ReplyError" }));
  const message = {
    move: "message" as const,
    id: made.id,
    params: { message_id: "one", message_hash: "one" },
    history: [JSON.stringify({ messageId: "one", role: "ROLE_USER", parts: [{ text: "one" }] })],
    read: true,
  };
  const cancel = { move: "cancel" as const, id: made.id };
  expect(await broker.writer.moveBoth(message, cancel)).toBeNull();
  expect(calls).toHaveBeenCalledTimes(2);
  const { outcome, record } = await broker.writer.move(message);
  expect([outcome.kind, record?.get("version")]).toEqual(["ok", 2]);
});
