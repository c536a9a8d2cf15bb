/** Events of one delegation and of everything, as streams and as JSON pages: snapshots, cursors, filters, resets. */
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../../src/schema/limits.ts";
import { as, client, OPERATOR, startBroker } from "../../support/broker.ts";
import { entryFields } from "../../support/entry.ts";
import { onOneRedis } from "../../support/on-cluster.ts";
import { openStream } from "../../support/sse.ts";
import { until } from "../../support/until.ts";

const onOneShard = onOneRedis("it uses a cursor as the id of an event, which it is with one shard");

async function setup() {
  const broker = await startBroker();
  const api = client(broker.url);
  await api.agent("scout");
  const { body } = await api.delegate("scout");
  const stream = (query = "", more = {}) =>
    openStream(`${broker.url}/v1/delegations/${body.id}/events${query}`, more);
  const finish = async () => {
    const { leases } = (await api.lease("scout")).body;
    await api.heartbeat(leases[0].lease_id, { progress: { message: "half" } });
    await api.reply(leases[0].lease_id);
  };
  return { ...broker, api, id: String(body.id), stream, finish };
}

describe("one delegation's stream", () => {
  test("starts with a snapshot, continues live, and ends after the terminal event", async () => {
    const { stream, finish } = await setup();
    const live = await stream();
    expect(live.headers.get("content-type")).toMatch(/^text\/event-stream/);
    await live.has("DELEGATION_SNAPSHOT");
    await finish();
    await live.ended();
    expect(live.events.map(({ event, data }) => [event, data.status ?? data.delegation?.state])).toEqual([
      ["DELEGATION_SNAPSHOT", "submitted"],
      ["DELEGATION_STATUS", "leased"],
      ["DELEGATION_STATUS", "progress"],
      ["DELEGATION_COMPLETE", undefined],
    ]);
    for (const { id, event, data } of live.events) expect(data).toMatchObject({ id, type: event });
  });

  test("resumes by Last-Event-ID at every point, without a gap or a repeat", async () => {
    const { stream, finish } = await setup();
    await finish();
    const whole = await stream("?after=0");
    await whole.ended();
    const ids = whole.events.map(({ id }) => id);
    expect(ids).toHaveLength(4);
    for (const [index, lastEventId] of ids.slice(0, -1).entries()) {
      const rest = await stream("", { lastEventId });
      await rest.ended();
      expect(rest.events.map(({ id }) => id)).toEqual(ids.slice(index + 1));
    }
  });

  test("a snapshot's id resumes directly after the snapshot", async () => {
    const { stream, finish } = await setup();
    const live = await stream();
    await live.has("DELEGATION_SNAPSHOT");
    const cursor = live.events[0]?.id ?? "";
    live.close();
    await finish();
    const rest = await stream("", { lastEventId: cursor });
    await rest.ended();
    expect(rest.events.map(({ data }) => data.seq)).toEqual([2, 3, 4]);
  });

  test("resuming after the end is 204; a finished delegation without a cursor is its snapshot", async () => {
    const { stream, finish } = await setup();
    await finish();
    const snapshot = await stream();
    await snapshot.ended();
    expect(snapshot.events.map(({ event, data }) => [event, data.delegation.state])).toEqual([
      ["DELEGATION_SNAPSHOT", "completed"],
    ]);
    expect((await stream("", { lastEventId: snapshot.events[0]?.id ?? "" })).status).toBe(204);
  });

  onOneShard(
    "a browser that reconnects to the same URL resumes by its header, and stops after the end",
    async () => {
      const { stream, finish, api } = await setup();
      await finish();
      const whole = await stream("?after=0");
      await whole.ended();
      const again = await stream("?after=0", { lastEventId: whole.events[1]?.id ?? "" });
      await again.ended();
      expect(again.events.map(({ id }) => id)).toEqual(whole.events.slice(2).map(({ id }) => id));
      // A cursor of the stream of everything may be later than this delegation's last event.
      await api.delegate("scout");
      const { cursor } = (await api.call("GET", "/v1/events", undefined, { accept: "application/json" }))
        .body;
      expect((await stream(`?after=${cursor}`)).status).toBe(204);
    },
  );

  test("a HEAD request opens no stream", async () => {
    const { url, gateway } = await setup();
    const response = await fetch(`${url}/v1/events`, {
      method: "HEAD",
      headers: { authorization: "Bearer operator-token-for-tests" },
    });
    expect(response.status).toBe(200);
    expect(await gateway.broker.metrics.text()).toContain("errand_event_streams 0");
  });

  test("a closed stream aborts nothing", async () => {
    const { stream, finish, api, id } = await setup();
    const live = await stream();
    await live.has("DELEGATION_SNAPSHOT");
    live.close();
    await finish();
    expect((await api.get(id)).body.state).toBe("completed");
  });

  test("a malformed cursor is refused, as a stream and as JSON", async () => {
    const { stream, api, id } = await setup();
    expect((await stream("?after=nonsense")).status).toBe(400);
    expect((await api.events(id, "?after=1-2.3-4")).body.code).toBe("invalid_request");
  });

  test("the JSON form has the same events and the same cursors", async () => {
    const { api, id, finish, stream } = await setup();
    const first = await api.events(id, "");
    expect(first.body.events[0].type).toBe("DELEGATION_SNAPSHOT");
    const waiting = api.events(id, `?after=${first.body.cursor}&wait_seconds=10`);
    await finish();
    const page = (await waiting).body;
    expect(page.events.length).toBeGreaterThan(0);
    const rest = page.events.length < 3 ? (await api.events(id, `?after=${page.cursor}`)).body.events : [];
    const whole = await stream("?after=0");
    await whole.ended();
    expect([...page.events, ...rest]).toEqual(whole.events.slice(1).map(({ data }) => data));
  });
});

describe("the stream of everything", () => {
  test("shows each principal what concerns it, live and replayed alike", async () => {
    const { url, api } = await setup();
    await api.agent("other");
    const alice = await as(url, "caller:alice");
    const bob = await as(url, "caller:bob");
    const scout = await as(url, "agent:scout");
    const viewer = await as(url, "viewer:eve");
    const live = await openStream(`${url}/v1/events`, { token: alice.token });
    const toScout = (await alice.delegate("scout")).body.id;
    const toOther = (await alice.delegate("other")).body.id;
    const bobs = (await bob.delegate("other")).body.id;
    await until(() => live.events.length === 2);
    const seen = async (token: string, query = "") => {
      const stream = await openStream(`${url}/v1/events?after=0${query}`, { token });
      await until(() => stream.events.length > 0).catch(() => null);
      stream.close();
      return stream.events.map(({ data }) => data.delegation_id);
    };
    expect(live.events.map(({ data }) => data.delegation_id)).toEqual([toScout, toOther]);
    expect(await seen(alice.token)).toEqual([toScout, toOther]);
    expect(await seen(bob.token)).toEqual([bobs]);
    expect(await seen(scout.token)).toContain(toScout);
    expect(await seen(scout.token)).not.toContain(toOther);
    expect(await seen(viewer.token)).toEqual(expect.arrayContaining([toScout, toOther, bobs]));
    expect(await seen(viewer.token, "&target=other")).toEqual([toOther, bobs]);
    expect(await seen(viewer.token, "&delegator=caller:bob")).toEqual([bobs]);
    expect(await seen(alice.token, `&delegation_id=${toOther}`)).toEqual([toOther]);
    live.close();
  });

  describe("filtered", () => {
    async function withTwo() {
      const { url, api, redis } = await setup();
      const viewer = await as(url, "viewer:eve");
      const [one, two] = await Promise.all(
        ["trip", "home"].map(async (context_id) => {
          const { id } = (await api.delegate("scout", { context_id })).body;
          await api.cancel(id);
          return String(id);
        }),
      );
      const seen = async (query: string, after = "0") => {
        const path = `/v1/events?after=${after}&${query}`;
        const { body } = await viewer.call("GET", path, undefined, { accept: "application/json" });
        return {
          cursor: String(body.cursor),
          events: body.events.map(({ type, delegation_id }: Record<string, string>) => [type, delegation_id]),
        };
      };
      return { url, api, viewer, redis, one, two, seen };
    }

    test("by context, by types, and by both, it shows what matches all", async () => {
      const { one, two, seen } = await withTwo();
      expect((await seen("context_id=trip")).events).toEqual([
        ["DELEGATION_SENT", one],
        ["DELEGATION_FAILED", one],
      ]);
      const ended = (await seen("types=DELEGATION_FAILED,DELEGATION_COMPLETE")).events;
      expect(ended.sort()).toEqual(
        [
          ["DELEGATION_FAILED", one],
          ["DELEGATION_FAILED", two],
        ].sort(),
      );
      expect((await seen("types=DELEGATION_FAILED&context_id=home")).events).toEqual([
        ["DELEGATION_FAILED", two],
      ]);
    });

    test.each(["delegation_id=", "delegator=operator", "target=scout"])(
      "by %s, it has everything in the principal's feed, which is longer than the stream of all",
      async (query) => {
        const { redis, one, seen } = await withTwo();
        await redis.xtrim("{errand:0}:events", "MAXLEN", 0);
        const whole = query.endsWith("=") ? `${query}${one}` : query;
        expect((await seen(whole)).events).toEqual(
          expect.arrayContaining([
            ["DELEGATION_SENT", one],
            ["DELEGATION_FAILED", one],
          ]),
        );
      },
    );

    onOneShard("a poll without matching events moves its cursor past the filtered ones", async () => {
      const { redis, seen } = await withTwo();
      const { cursor } = await seen("context_id=none");
      let answered = false;
      const poll = seen("context_id=none&wait_seconds=1", cursor).finally(() => {
        answered = true;
      });
      const written: string[] = [];
      for (; !answered; ) {
        const id = await redis.xadd("{errand:0}:events", "*", ...entryFields());
        written.push(id ?? "");
      }
      const { cursor: moved } = await poll;
      expect(written.indexOf(moved)).toBeGreaterThan(written.length / 2);
    });
  });

  test("a stream that is lost before its first event is resumed where it began", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const controller = new AbortController();
    const headers = { accept: "text/event-stream", authorization: `Bearer ${OPERATOR}` };
    const response = await fetch(`${url}/v1/events`, { headers, signal: controller.signal });
    const first = await response.body?.pipeThrough(new TextDecoderStream()).getReader().read();
    const cursor = /^retry: \d+\nid: (\S+)\nevent: CURSOR\ndata: \{"id":"\1","type":"CURSOR"\}\n\n$/.exec(
      first?.value ?? "",
    )?.[1];
    controller.abort();
    const { id } = (await api.delegate("scout")).body;
    const resumed = await openStream(`${url}/v1/events`, { lastEventId: cursor ?? expect.unreachable() });
    await resumed.has("DELEGATION_SENT");
    expect(resumed.events[0]?.data.delegation_id).toBe(id);
    resumed.close();
  });

  test("without a cursor it starts now, and a JSON answer carries that cursor", async () => {
    const { api, finish } = await setup();
    const json = { accept: "application/json" };
    const { body } = await api.call("GET", "/v1/events", undefined, json);
    expect(body.events).toEqual([]);
    await finish();
    const next = await api.call("GET", `/v1/events?after=${body.cursor}`, undefined, json);
    expect(next.body.events.map((event: { seq: number }) => event.seq)).toEqual([2, 3, 4]);
  });

  onOneShard("a trimmed cursor gets one RESET, then the events still stored; 0 never gets one", async () => {
    const { url, api, redis, id, finish } = await setup();
    const first = (await api.events(id)).body.events[0].id;
    await finish();
    await redis.xtrim("{errand:0}:events", "MAXLEN", 1);
    const types = async (after: string) => {
      const stream = await openStream(`${url}/v1/events?after=${after}`);
      await stream.has("DELEGATION_COMPLETE");
      stream.close();
      return stream.events.map(({ event }) => event);
    };
    expect(await types(first)).toEqual(["RESET", "DELEGATION_COMPLETE"]);
    expect(await types("0")).toEqual(["DELEGATION_COMPLETE"]);
    // Only once: the cursor of the RESET is valid.
    const page = async (after: string) =>
      (await api.call("GET", `/v1/events?after=${after}&limit=1`, undefined, { accept: "application/json" }))
        .body;
    const reset = await page(first);
    expect(reset.events).toMatchObject([{ type: "RESET" }]);
    expect((await page(reset.cursor)).events).toMatchObject([{ type: "DELEGATION_COMPLETE" }]);
  });

  // It uses a cursor as the id of an event, which it is with one shard.
  describe.skipIf(process.env.ERRAND_TEST_CLUSTER)("a cursor older than the retention", () => {
    const RETENTION_MS = 3_600_000;
    const FEED = "{errand:0}:feed:caller:alice";
    const ago = (ms: number) => `${Date.now() - ms}-0`;

    async function aliceAt() {
      const { url, redis } = await setup();
      const alice = await as(url, "caller:alice");
      /** The types that a poll from the cursor returns, and its new cursor. */
      const from = async (after: string) => {
        const path = `/v1/events?after=${after}`;
        const { body } = await alice.call("GET", path, undefined, { accept: "application/json" });
        return { types: body.events.map(({ type }: { type: string }) => type), cursor: String(body.cursor) };
      };
      return { alice, redis, from };
    }

    test("gets one RESET when the whole feed has expired; a recent cursor and 0 get none", async () => {
      const { alice, redis, from } = await aliceAt();
      await alice.delegate("scout");
      await redis.pexpire(FEED, 1);
      await until(async () => (await redis.exists(FEED)) === 0);
      const answered = await from(ago(RETENTION_MS + 1_000));
      expect(answered.types).toEqual(["RESET"]);
      expect((await from(answered.cursor)).types).toEqual([]);
      expect((await from(ago(RETENTION_MS - 60_000))).types).toEqual([]);
      expect((await from("0")).types).toEqual([]);
    });

    test("gets one RESET and the stored events when a new feed began, unless soon after the cursor", async () => {
      const { alice, from } = await aliceAt();
      await alice.delegate("scout");
      const answered = await from(ago(RETENTION_MS + 1_000));
      expect(answered.types).toEqual(["RESET", "DELEGATION_SENT"]);
      expect((await from(answered.cursor)).types).toEqual([]);
      expect((await from(ago(RETENTION_MS - 60_000))).types).toEqual(["DELEGATION_SENT"]);
      expect((await from("0")).types).toEqual(["DELEGATION_SENT"]);
    });

    test("gets none when the feed still has older events", async () => {
      const { alice, redis, from } = await aliceAt();
      for (const ms of [30_000, 20_000]) await redis.xadd(FEED, ago(RETENTION_MS + ms), ...entryFields());
      await redis.xtrim(FEED, "MAXLEN", 1);
      await alice.delegate("scout");
      expect((await from(ago(RETENTION_MS + 10_000))).types).toEqual(["DELEGATION_SENT"]);
    });

    test("of one delegation gets none: its events are stored as long as its record", async () => {
      const { alice } = await aliceAt();
      const { id } = (await alice.delegate("scout")).body;
      const { events } = (await alice.events(id, `?after=${ago(10 * RETENTION_MS)}`)).body;
      expect(events).toMatchObject([{ type: "DELEGATION_SENT" }]);
    });
  });

  test("a gateway streams what another one writes", async () => {
    const { api, id, another, finish } = await setup();
    const second = await another();
    const live = await openStream(`${second.url}/v1/delegations/${id}/events`);
    await live.has("DELEGATION_SNAPSHOT");
    await finish();
    await live.ended();
    expect(live.events.at(-1)?.event).toBe("DELEGATION_COMPLETE");
    expect((await api.get(id)).body.state).toBe("completed");
  });
});

test("a stream that replays takes read turns like a list, and none once it is live", async () => {
  const { url, gateway } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const { id } = (await api.delegate("scout")).body;
  const caller = { text: "operator" };
  const { readLimiter } = gateway.broker;
  const taken = await Promise.all(
    Array.from({ length: LIMITS.reads.value }, () => readLimiter.acquire(caller)),
  );
  const streams = [
    await openStream(`${url}/v1/events?after=0`),
    await openStream(`${url}/v1/delegations/${id}/events?after=0`),
  ];
  // Another principal's list waits for none of them.
  const other = await as(url, "caller:bob");
  expect((await other.call("GET", "/v1/delegations")).status).toBe(200);
  expect(streams.map(({ events }) => events.length)).toEqual([0, 0]);
  for (const end of taken) end();
  for (const { events } of streams) await until(() => events.length > 0);
  await api.cancel(id);
  for (const { events } of streams) await until(() => events.length > 1);
  for (const end of await Promise.all(taken.map(() => readLimiter.acquire(caller)))) end();
});
