/** A watch across cuts: no event is skipped or repeated, and it ends at the final event. */
import { expect, test } from "vitest";
import { Delegator } from "../../src/client/delegator.ts";
import type { StreamEvent } from "../../src/schema/event.ts";
import { until } from "../support/until.ts";
import { BROKER_ID, delegationLike, eventLike, frame, ID, stubBroker } from "./stub-broker.ts";

const sent = eventLike(1, "DELEGATION_SENT", { state: "submitted", status: "queued" });
const leased = eventLike(2, "DELEGATION_STATUS", { status: "leased" });
const progress = eventLike(3, "DELEGATION_STATUS", { status: "progress" });
const complete = eventLike(4, "DELEGATION_COMPLETE");

async function collect(events: AsyncIterable<StreamEvent>): Promise<string[]> {
  const ids: string[] = [];
  for await (const event of events) ids.push(event.id);
  return ids;
}

test("resumes after the last whole event when an event is cut in the middle", async () => {
  const stub = await stubBroker((request, answer) => {
    if (request.headers["last-event-id"] === undefined) {
      answer.events([": hello\n\n", frame(sent), frame(leased), frame(progress).slice(0, 60)]);
      setTimeout(() => answer.cut(), 20);
    } else {
      answer.events([frame(progress), frame(complete)]);
    }
  });
  const ids = await collect(new Delegator({ url: stub.url, token: "t" }).watch(ID));
  expect(ids).toEqual(["1-0", "2-0", "3-0", "4-0"]);
  expect(stub.seen.map(({ headers }) => headers["last-event-id"])).toEqual([undefined, "2-0"]);
  expect(stub.seen[1]?.headers).toMatchObject({ accept: "text/event-stream", authorization: "Bearer t" });
});

test("returns after the time that the broker chose, unless that is on this machine", async () => {
  const at: number[] = [];
  const stub = await stubBroker((_request, answer) => {
    at.push(performance.now());
    if (at.length % 2 === 0) return answer.events([frame(complete)]);
    answer.events(["retry: 900\n\n", frame(sent)]);
    answer.raw.end();
  });
  const elsewhere = stub.url.replace("127.0.0.1", "0.0.0.0");
  for (const url of [elsewhere, stub.url]) await collect(new Delegator({ url }).watch(ID));
  const [first = 0, second = 0] = at;
  expect(second - first).toBeGreaterThanOrEqual(899);
});

test("drops events that a broker repeats after a reconnect", async () => {
  const stub = await stubBroker((_request, answer) => {
    if (stub.seen.length === 1) {
      answer.events([frame(sent), frame(leased)]);
      answer.raw.end();
    } else {
      answer.events([frame(leased), frame(leased), frame(progress), frame(complete)]);
    }
  });
  const ids = await collect(new Delegator({ url: stub.url }).watch(ID));
  expect(ids).toEqual(["1-0", "2-0", "3-0", "4-0"]);
});

test("hands on what a newer broker adds, as it was sent, and leaves out what is about no delegation", async () => {
  const later = eventLike(2, "DELEGATION_STATUS", { status: "teleported", to: "mars" });
  const renamed = eventLike(3, "DELEGATION_MOVED", { progress: { mood: "good" } });
  const more = eventLike(4, "DELEGATION_STATUS", { status: "progress", progress: { done: 1, mood: "good" } });
  const end = eventLike(5, "DELEGATION_COMPLETE", { duration_ms: "long" });
  const none = { id: "4-1", type: "WEATHER", sky: "blue" };
  const stub = await stubBroker((_request, answer) =>
    answer.events([sent, later, renamed, none, more, end].map(frame)),
  );
  const events: StreamEvent[] = [];
  for await (const event of new Delegator({ url: stub.url }).watch(ID)) events.push(event);
  expect(events.map(({ type }) => type)).toEqual([
    ...["DELEGATION_SENT", "UNKNOWN", "UNKNOWN", "DELEGATION_STATUS", "UNKNOWN"],
  ]);
  expect(events[1]).toEqual({ ...envelope(later), type: "UNKNOWN", event: later });
  expect(events[2]).toMatchObject({ seq: 3, event: renamed });
  expect(events[3]).toMatchObject({ status: "progress", progress: { done: 1 } });
  // A final event ends the watch, also if it is not understood.
  expect(events[4]).toMatchObject({ state: "completed", event: { duration_ms: "long" } });
});

const envelope = ({ id, delegation_id, seq, at, state, target, delegator, context_id }: typeof sent) => ({
  ...{ id, delegation_id, seq, at, state, target, delegator, context_id },
});

test("waits an outage out, including 503 and 429", async () => {
  const stub = await stubBroker((_request, answer) => {
    if (stub.seen.length === 1) answer.problem(503, "shutting_down", "TRANSPORT");
    else if (stub.seen.length === 2) answer.problem(429, "quota_exceeded", "TRANSPORT");
    else if (stub.seen.length === 3) answer.cut();
    else answer.events([frame(complete)]);
  });
  expect(await collect(new Delegator({ url: stub.url }).watch(ID))).toEqual(["4-0"]);
});

test("ends at a snapshot of a finished delegation, and at 204", async () => {
  const snapshot = {
    id: "9-0",
    type: "DELEGATION_SNAPSHOT",
    delegation_id: ID,
    delegation: delegationLike({ state: "canceled", news: true }),
  };
  const stub = await stubBroker((request, answer) => {
    // Whether a question is open is read before the stream goes on.
    if (!request.path.endsWith("/events")) answer.json(delegationLike({ state: "canceled" }));
    else if (request.headers["last-event-id"] === "9-0")
      answer.raw.writeHead(204, { "errand-broker": BROKER_ID }).end();
    else answer.events([frame(snapshot)]);
  });
  const delegator = new Delegator({ url: stub.url });
  expect(await collect(delegator.watch(ID))).toEqual(["9-0"]);
  expect(await collect(delegator.watch(ID, { after: "9-0" }))).toEqual([]);
  expect(stub.seen).toHaveLength(3);
});

test("resumes after a frame that is left out", async () => {
  const unknown = { id: "2-7", type: "WEATHER" };
  const stub = await stubBroker((_request, answer) => {
    if (stub.seen.length === 1) {
      answer.events([frame(sent), frame(unknown)]);
      answer.raw.end();
    } else {
      answer.events([frame(complete)]);
    }
  });
  expect(await collect(new Delegator({ url: stub.url }).watch(ID))).toEqual(["1-0", "4-0"]);
  expect(stub.seen[1]?.headers["last-event-id"]).toBe("2-7");
});

test("a refusal that no retry can fix is thrown", async () => {
  const stub = await stubBroker((_request, answer) =>
    answer.problem(404, "delegation_not_found", "UPSTREAM"),
  );
  await expect(collect(new Delegator({ url: stub.url }).watch(ID))).rejects.toMatchObject({
    code: "delegation_not_found",
  });
});

test("a filter starts at a fixed position: a stream cut before its first event misses nothing", async () => {
  const stub = await stubBroker((request, answer) => {
    if (request.headers.accept === "application/json") answer.json({ events: [], cursor: "c-100" });
    else if (stub.seen.length === 2) answer.cut();
    else answer.events([frame(leased)]);
  });
  const controller = new AbortController();
  const watching = new Delegator({ url: stub.url }).watch(
    { target: "scout", types: ["DELEGATION_STATUS", "DELEGATION_COMPLETE"] },
    { signal: controller.signal },
  );
  expect((await watching.next()).value).toMatchObject({ id: "2-0" });
  const streams = stub.seen.slice(1);
  expect(streams.map(({ headers }) => headers["last-event-id"])).toEqual(["c-100", "c-100"]);
  expect(Object.fromEntries(streams[0]?.query ?? [])).toEqual({
    target: "scout",
    types: "DELEGATION_STATUS,DELEGATION_COMPLETE",
  });
  const reason = new Error("enough");
  const next = watching.next();
  controller.abort(reason);
  await expect(next).rejects.toBe(reason);
});

test("leaving the loop closes the connection", async () => {
  let closed = false;
  const stub = await stubBroker((_request, answer) => {
    answer.raw.on("close", () => {
      closed = true;
    });
    answer.events([frame(sent)]);
  });
  for await (const event of new Delegator({ url: stub.url }).watch(ID)) {
    expect(event.id).toBe("1-0");
    break;
  }
  await until(() => closed, { what: "the stream's connection closed" });
});
