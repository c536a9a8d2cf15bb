import { setMaxListeners } from "node:events";
import { expect } from "vitest";
import { type DelegationEvent, eventSchema } from "../../src/schema/event.ts";
import { as, client, request, startBroker } from "../support/broker.ts";
import { checkHistory } from "../support/history.ts";
import { onOneRedis } from "../support/on-cluster.ts";
import { subscribe } from "../support/subscriber.ts";
import { until } from "../support/until.ts";

const DELEGATIONS = 2_000;
const CUTS = 50;
const AGENTS = 10;

type Seen = { id: string; delegation_id: string };

/** Polls for pages from the beginning, at each of `urls` in turn; a cut poll is repeated with the same cursor. */
function pollPages(urls: readonly string[], token: string) {
  const events: Seen[] = [];
  const stopped = new AbortController();
  let cursor = "0";
  let polls = 0;
  let current = new AbortController();
  const run = async () => {
    while (!stopped.signal.aborted) {
      const url = urls[polls % urls.length] ?? "";
      polls += 1;
      current = new AbortController();
      const signal = AbortSignal.any([current.signal, stopped.signal]);
      const path = `/v1/events?after=${cursor}&wait_seconds=20&limit=1000`;
      const headers = { accept: "application/json" };
      const answer = await request(url, "GET", path, { token, headers, signal }).catch(() => null);
      if (!answer) continue;
      expect(answer.status).toBe(200);
      events.push(...answer.body.events);
      cursor = answer.body.cursor;
    }
  };
  setMaxListeners(0, stopped.signal);
  const done = run();
  return {
    events,
    cursor: () => cursor,
    cut: () => current.abort(),
    stop: () => {
      stopped.abort();
      return done;
    },
  };
}

function byDelegation(events: readonly DelegationEvent[]): Map<string, DelegationEvent[]> {
  const histories = new Map<string, DelegationEvent[]>();
  for (const event of events) {
    const history = histories.get(event.delegation_id) ?? [];
    histories.set(event.delegation_id, [...history, event]);
  }
  return histories;
}

const onOneShard = onOneRedis("it compares the order of all events, which is defined within a shard");

onOneShard(
  "cut 50 times during 2 000 delegations, through two gateways in turn: every event once, in order",
  async () => {
    const broker = await startBroker();
    const second = await broker.another();
    const urls = [broker.url, second.url];
    const alice = await as(broker.url, "caller:alice");
    const names = Array.from({ length: AGENTS }, (_, n) => `agent-${n}`);
    for (const name of names) await client(broker.url).agent(name);
    const stream = subscribe(urls, alice.token);
    const pages = pollPages(urls, alice.token);

    let answered = 0;
    const work = async (n: number) => {
      const api = client(urls[n % urls.length] ?? "");
      let { leases } = (await api.lease(names[n] ?? "")).body;
      while (answered < DELEGATIONS) {
        const next = { wait_seconds: 1 };
        const [lease] = leases;
        if (lease) answered += 1;
        const answer = lease
          ? await api.reply(lease.lease_id, { next })
          : await api.lease(names[n] ?? "", next);
        expect(answer.status).toBe(200);
        leases = answer.body.leases;
      }
    };
    const delegate = async (n: number) => {
      const api = client(urls[n % urls.length] ?? "", alice.token);
      for (let i = 0; i < DELEGATIONS / AGENTS; i += 1) {
        expect((await api.delegate(names[(n + i) % AGENTS] ?? "", { task: `task ${i}` })).status).toBe(202);
      }
    };
    const load = Promise.all(names.flatMap((_, n) => [work(n), delegate(n)]));
    for (let cuts = 0; cuts < CUTS; cuts += 1) {
      await until(() => answered >= (cuts * DELEGATIONS) / (CUTS + 1) && stream.isOpen(), {
        timeoutMs: 60_000,
        what: "the next cut's time",
      });
      const opened = stream.opened();
      stream.cut();
      pages.cut();
      await until(() => stream.opened() > opened, { what: "the resumed stream" });
    }
    await load;

    const stored = await broker.redis.xrange("{errand:0}:feed:caller:alice", "-", "+");
    const ids = stored.map(([id]) => id);
    expect(ids).toHaveLength(3 * DELEGATIONS);
    await until(() => stream.events.length >= ids.length && pages.events.length >= ids.length, {
      what: "the last event",
    });
    await Promise.all([stream.stop(), pages.stop()]);

    expect(stream.opened()).toBeGreaterThan(CUTS);
    for (const seen of [stream.events.map(({ data }) => data), pages.events]) {
      expect(seen.map(({ id }) => id)).toEqual(ids);
      const histories = byDelegation(seen.map((event) => eventSchema.parse(event)));
      expect(histories.size).toBe(DELEGATIONS);
      for (const history of histories.values()) checkHistory(history, "finished");
    }
    // Both forms have the same cursor, and nothing follows it.
    expect(pages.cursor()).toBe(stream.cursor());
    const rest = await alice.call("GET", `/v1/events?after=${stream.cursor()}`, undefined, {
      accept: "application/json",
    });
    expect(rest.body).toEqual({ events: [], cursor: stream.cursor() });
  },
  300_000,
);
