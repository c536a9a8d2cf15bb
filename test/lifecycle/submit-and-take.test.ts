/** A move and the take of a ticket for a poll, in one script. handoff.ts chooses the poll and has its own tests. */
import { pino } from "pino";
import { expect, test, vi } from "vitest";
import type { Command, Taker } from "../../src/lifecycle/command.ts";
import { Tickets } from "../../src/queue/tickets.ts";
import { openLifecycle, readFieldsOf } from "../support/lifecycle.ts";
import { ownEvents } from "../support/own-events.ts";
import { fieldsOf } from "../support/record.ts";

const TAKER: Taker = { agent: "scout", nonce: "taker", worker_id: "w7", lease_ms: 20_000, confirm_ms: 3_000 };

async function takingDesk(spec?: unknown) {
  const lifecycle = await openLifecycle(spec);
  const { writer, shards, command } = lifecycle;
  const tickets = new Tickets(lifecycle.redis, shards, pino({ level: "silent" }));
  async function newWork(params: Command["params"] = {}, id = shards.newDelegationId("scout")) {
    const base = await command("submit", id);
    return { ...base, read: true, params: { ...base.params, ...params } };
  }
  /** Submits new work with a taker. */
  async function submit(params?: Command["params"], id?: string) {
    const asked = await newWork(params, id);
    return { id: asked.id, ...(await writer.move(asked, TAKER)) };
  }
  const ticketOf = (id: string, ticket = 1) => tickets.find("scout", { delegation_id: id, ticket });
  return { ...lifecycle, newWork, submit, ticketOf };
}

test("new work is created and taken in one script with the taker's settings, and the record returned is the leased one", async () => {
  const { redis, writer, newWork, ticketOf, read } = await takingDesk();
  const asked = await newWork();
  const { id } = asked;
  const scripts = vi.spyOn(redis, "evalsha");
  const { outcome, record, taken } = await writer.move(asked, TAKER);
  expect(scripts).toHaveBeenCalledTimes(1);
  expect(outcome).toMatchObject({ kind: "ok", move: "submit", state: "submitted", ticketed: true });
  expect(taken?.outcome).toMatchObject({ kind: "ok", move: "lease", id, fence: 1, attempt: 1 });
  expect(readFieldsOf(record)).toMatchObject({ id, state: "working", version: 2, fence: 1 });
  expect(readFieldsOf(taken?.record)).toMatchObject({ id, version: 2, message: record?.get("message") });
  const stored = await read(id);
  expect(JSON.parse(stored?.json ?? "")).toEqual(JSON.parse(record?.json ?? ""));
  const { lease } = JSON.parse(stored?.json ?? "");
  expect(lease.worker_id).toBe("w7");
  expect(Date.parse(lease.expires_at) - Date.parse(lease.granted_at)).toBe(20_000);
  expect(await fieldsOf(redis, `{errand:0}:d:${id}`)).toMatchObject({
    nonce: "taker",
    confirm_by: String(Date.parse(lease.granted_at) + 3_000),
  });
  // Nobody was before it, so it needed no ticket.
  expect([await ticketOf(id), await redis.exists("{errand:0}:q:scout:prioritized")]).toEqual(["missing", 0]);
  const events = await ownEvents(redis, id);
  expect(events.map(([, text]) => text.split("\n").slice(0, 6))).toEqual([
    ["DELEGATION_SENT", id, "1", expect.any(String), "submitted", "queued"],
    ["DELEGATION_STATUS", id, "2", expect.any(String), "working", "leased"],
  ]);
  expect(events.map(([at]) => at)).toEqual([outcome, taken?.outcome].map((one) => one && eventId(one)));
});

const eventId = (outcome: object): unknown => ("event_id" in outcome ? outcome.event_id : undefined);

test("the script's answers only mark texts that the command stored, whatever other fields contain; the records have all", async () => {
  const { redis, writer, newWork, submit, move, command, read } = await takingDesk();
  // So that Redis has the scripts.
  await move("complete", (await submit()).id);
  const message = '{"messageId":"m1","role":"ROLE_USER","parts":[]}';
  const asked = { ...(await newWork()), fields: { message } };
  const { id } = asked;
  const scripts = vi.spyOn(redis, "evalsha");
  const { record: leased, taken } = await writer.move(asked, { ...TAKER, worker_id: "=" });
  expect(readFieldsOf(taken?.record)).toMatchObject({ worker_id: "=", message });
  expect(readFieldsOf(leased)).toMatchObject({ worker_id: "=", message, reply: "null" });
  const complete = await command("complete", id);
  const reply = '{"messageId":"r","role":"ROLE_AGENT","parts":[]}';
  const { record: ended } = await writer.move({ ...complete, fields: { reply }, read: true });
  expect(readFieldsOf(ended)).toMatchObject({ message, reply });
  expect(JSON.parse(ended?.json ?? "")).toEqual(JSON.parse((await read(id))?.json ?? ""));
  const answers = await Promise.all(scripts.mock.results.map(({ value }) => value));
  const [first, second] = answers.map((answer) => JSON.stringify(answer));
  const shown = (json: unknown) => JSON.stringify(json).slice(1, -1);
  expect(first).not.toContain(shown(message));
  expect(second).toContain(shown(message));
  expect(second).not.toContain(shown(reply));
});

test("the first ticket in the queue is taken, even if it is not that of the new work", async () => {
  const { submit, inState, ticketOf } = await takingDesk();
  const older = await inState("submitted");
  const { id, record, taken } = await submit();
  expect(readFieldsOf(taken?.record)).toMatchObject({ id: older, state: "working" });
  expect(readFieldsOf(record)).toMatchObject({ id, state: "submitted", version: 1 });
  expect([await ticketOf(older), await ticketOf(id)]).toEqual(["missing", "queued"]);
  // Unless the new work comes before it.
  const urgent = await submit({ priority: 9 });
  expect(readFieldsOf(urgent.taken?.record)).toMatchObject({ id: urgent.id, state: "working" });
});

test("stale tickets are removed with the take, and the new one stays", async () => {
  const { submit, inState, move, ticketOf } = await takingDesk();
  const canceled = await inState("submitted");
  await move("cancel", canceled);
  const { id, record, taken } = await submit();
  expect(taken?.outcome).toMatchObject({ kind: "state", id: canceled });
  expect(readFieldsOf(record)).toMatchObject({ id, state: "submitted" });
  expect([await ticketOf(canceled), await ticketOf(id)]).toEqual(["missing", "queued"]);
});

test("no ticket is taken for a blocked agent", async () => {
  const { submit, agents, ticketOf } = await takingDesk({ limits: { max_working: 1 } });
  await agents.setPaused("scout", true);
  const paused = await submit();
  expect(paused.taken).toMatchObject({ outcome: { kind: "blocked", why: "paused" }, record: null });
  expect(readFieldsOf(paused.record)).toMatchObject({ id: paused.id, state: "submitted" });
  await agents.setPaused("scout", false);
  expect(readFieldsOf((await submit()).taken?.record)).toMatchObject({ id: paused.id, state: "working" });
  const full = await submit();
  expect(full.taken?.outcome).toMatchObject({ kind: "blocked", why: "max_working" });
  expect([full.record?.get("state"), await ticketOf(full.id)]).toEqual(["submitted", "queued"]);
});

test("delayed work is not taken, and no other ticket is taken in its place", async () => {
  const { submit, inState, ticketOf } = await takingDesk();
  const ready = await inState("submitted");
  const { id, outcome, record, taken } = await submit({ delay_ms: 60_000 });
  expect(outcome).toMatchObject({ kind: "ok", ticketed: true });
  expect([taken, record?.get("state")]).toEqual([undefined, "submitted"]);
  expect([await ticketOf(id), await ticketOf(ready)]).toEqual(["delayed", "queued"]);
});

test.each([
  ["exists", {}],
  ["full", { limits: { max_waiting: 1 } }],
  ["no_agent", {}],
] as const)("a submit that is refused takes nothing: %s", async (refusal, spec) => {
  const { submit, inState, agents, redis, ticketOf } = await takingDesk(spec);
  const waiting = await inState("submitted");
  if (refusal === "no_agent") await agents.beginDeletion("scout", true);
  const { outcome, record, taken } = await submit({}, refusal === "exists" ? waiting : undefined);
  expect([outcome.kind, taken]).toEqual([refusal, undefined]);
  expect(record?.get("state")).toBe(refusal === "exists" ? "submitted" : undefined);
  expect(await ticketOf(waiting)).toBe("queued");
  expect(await redis.zcard("{errand:0}:live:scout:working")).toBe(0);
});

test("if the queue refuses the ticket, none is taken and the move is returned as not ticketed", async () => {
  const { submit, redis } = await takingDesk();
  await redis.set("{errand:0}:q:scout:prioritized", "not what BullMQ keeps there");
  const { outcome, record, taken } = await submit();
  expect(outcome).toMatchObject({ kind: "ok", ticketed: false });
  expect([taken, record?.get("state")]).toEqual([undefined, "submitted"]);
});

test("if the poll does not take the new work, and the queue refuses its ticket, the move is not ticketed", async () => {
  const { submit, agents, redis } = await takingDesk();
  await redis.set("{errand:0}:turns:scout", "no sorted set");
  await agents.setPaused("scout", true);
  const { outcome, record, taken } = await submit();
  expect(outcome).toMatchObject({ kind: "ok", ticketed: false });
  expect([taken, record?.get("state")]).toEqual([undefined, "submitted"]);
});

test("BullMQ trims the events of a queue whose first ticket had a taker", async () => {
  const { submit, agents, redis } = await takingDesk();
  await agents.setPaused("scout", true);
  await submit();
  expect(await redis.hget("{errand:0}:q:scout:meta", "opts.maxLenEvents")).toBe("1");
});

test("a failure of the take undoes nothing of the move, and the move is answered", async () => {
  const { submit, redis, read, ticketOf } = await takingDesk();
  await redis.set("{errand:0}:live:scout:working", "not a sorted set");
  const { id, outcome, record, taken } = await submit();
  // The gateway adds the ticket.
  expect(outcome).toMatchObject({ kind: "ok", move: "submit", ticketed: false });
  expect(taken).toBeUndefined();
  expect(record?.id).toBe(id);
  expect((await read(id))?.id).toBe(id);
  expect(await ticketOf(id)).toBe("missing");
});
