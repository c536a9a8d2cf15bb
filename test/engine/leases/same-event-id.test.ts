/** Two shards may write events with the same id at the same moment; each of them must wake a poll of its own agent. */
import { expect, test } from "vitest";
import { Handoff } from "../../../src/engine/leases/handoff.ts";
import { WaitingPoll } from "../../../src/engine/leases/waiting-poll.ts";
import { toEntry } from "../../../src/events/entry.ts";
import type { Sink } from "../../../src/events/feed.ts";
import { Shards } from "../../../src/redis/shards.ts";
import { entryFields } from "../../support/entry.ts";

const SHARDS = 2;
const turn = () => new Promise((resolve) => setImmediate(resolve));

test("an announced event does not silence the event of another shard that has its id", async () => {
  const shards = new Shards(SHARDS);
  const names = Array.from({ length: 20 }, (_, n) => `agent-${n}`);
  const [first = "", second = ""] = [0, 1].map((shard) =>
    names.find((name) => shards.indexOfAgent(name) === shard),
  );
  const fetched: string[] = [];
  let sink: Sink | undefined;
  const handoff = new Handoff({
    shards,
    clock: { offset_ms: 0 },
    writer: {
      move: () => expect.unreachable(),
      take: async ({ agent }) => {
        fetched.push(agent);
        return { outcome: { kind: "empty", now: 0 }, record: null, unseen: [] };
      },
      underWay: () => undefined,
    },
    tickets: { add: async () => {} },
    feed: {
      subscribe: (_, subscriber) => {
        sink = subscriber;
        return () => {};
      },
      hasDelivered: () => false,
      mayHaveDelivered: () => true,
    },
    broadcast: async () => {},
    pushAgents: { wake: () => {}, recheckAll: () => {} },
    isBlocked: async () => false,
    findGrants: async () => [],
    returnLease: async () => {},
    onReturn: () => {},
    warn: () => {},
    polls: { onError: (error) => expect.unreachable(String(error)) },
  });
  handoff.start();
  const leaving = new AbortController();
  for (const agent of [first, second]) {
    new WaitingPoll(handoff, agent, { wait_seconds: 60, max: 1 }, leaving.signal).wait(() => {});
  }
  await turn();
  fetched.length = 0;
  const id = "1700000000000-0";
  handoff.announce(first, id);
  const deliver = (target: string) => {
    const delegation_id = shards.newDelegationId(target);
    const fields = entryFields({ type: "DELEGATION_SENT", delegation_id, target });
    sink?.push(toEntry(shards.indexOfAgent(target), id, fields));
  };
  deliver(second);
  deliver(first);
  await turn();
  // The first one was woken by the announcement, and not again by its event.
  expect(fetched).toEqual([first, second]);
  leaving.abort();
  handoff.stop();
});
