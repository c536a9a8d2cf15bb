import { expect, test } from "vitest";
import { as, client, startBroker } from "../support/broker.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { startOwnRedis } from "../support/own-redis.ts";
import { retryUntilAnswered } from "../support/retry.ts";
import { subscribe } from "../support/subscriber.ts";
import { until } from "../support/until.ts";

const KILLS = 2;
const AGENTS = 8;
const BETWEEN_KILLS = 60;

test.each(["always", "everysec"] as const)(
  "kill -9 of Redis under load, %s: acknowledged work is there",
  async (fsync) => {
    const own = await startOwnRedis(fsync);
    const { url, another } = await startBroker({ redis: own.target, shards: 1, sweepEveryMs: 100 });
    const second = (await another()).url;
    const urls = [url, second];
    const names = Array.from({ length: AGENTS }, (_, n) => `agent-${n}`);
    // Retries of unknown outcomes may cost leases, never the delegation.
    const spec = { limits: { max_attempts: 50, lease_seconds: 1 }, backoff: { initial_ms: 0 } };
    for (const name of names) await client(url).agent(name, spec);
    const alice = await as(url, "caller:alice");
    const subscribers = [subscribe([url], alice.token), subscribe([second, url], alice.token)];

    /** The answers that clients received, by delegation id. */
    const accepted = new Map<string, string>();
    const matched = new Map<string, string>();
    let unknown = 0;
    let enough = false;

    const delegate = async (n: number) => {
      for (let i = 0; !enough; i += 1) {
        const task = `task ${n}.${i}`;
        const headers = { "idempotency-key": task };
        const { status, body } = await retryUntilAnswered(() => {
          const via = client(urls[(n + i) % urls.length] ?? "", alice.token);
          return via.delegate(names[n] ?? "", { task }, headers).then((answer) => {
            if (answer.status === 503) unknown += 1;
            return answer;
          });
        });
        expect([200, 202]).toContain(status);
        accepted.set(body.id, task);
      }
    };
    const work = async (n: number) => {
      const api = client(urls[n % urls.length] ?? "");
      while (!enough || matched.size < accepted.size) {
        const { leases } = (await retryUntilAnswered(() => api.lease(names[n] ?? "", { wait_seconds: 1 })))
          .body;
        for (const { lease_id, delegation } of leases) {
          const text = `answer to ${delegation.task_preview}`;
          const reply = await retryUntilAnswered(() => api.reply(lease_id, { text }));
          // Its lease may have expired during the retries; then another worker's reply counts.
          if (reply.status === 200) matched.set(delegation.id, text);
          else expect(reply.body.code).toBe("lease_lost");
        }
      }
    };
    const load = Promise.all(names.flatMap((_, n) => [delegate(n), work(n)]));
    for (let kills = 0; kills < KILLS; kills += 1) {
      const size = matched.size;
      await until(() => matched.size > size + BETWEEN_KILLS, { what: "load" });
      const pid = own.embedded.pid();
      own.signal("SIGKILL");
      await until(() => own.embedded.pid() !== undefined && own.embedded.pid() !== pid, {
        what: "a new Redis",
      });
    }
    const size = matched.size;
    await until(() => matched.size > size + BETWEEN_KILLS, { what: "load" });
    enough = true;
    await load;

    // The kills interrupted work, and there was much to lose.
    expect(unknown).toBeGreaterThan(0);
    expect(accepted.size).toBeGreaterThan((KILLS + 1) * BETWEEN_KILLS);
    const kept = new Map<string, string>();
    const check = async (id: string, task: string) => {
      const { status, body } = await alice.get(id);
      if (status === 200 && body.state === "completed") kept.set(id, body.reply.parts[0].text);
      expect([status, body.task_preview]).toEqual([200, task]);
      checkHistory(await eventsOf(alice, id), "finished");
    };
    await Promise.all([...accepted].map(([id, task]) => check(id, task)));
    expect(kept).toEqual(matched);
    expect(kept.size).toBe(accepted.size);
    const records = (await own.redis.keys("{errand:0}:d:dlg_*")).filter((key) => !/:d:.*:/.test(key));
    expect(records).toHaveLength(accepted.size);

    const stored = (await own.redis.xrange("{errand:0}:feed:caller:alice", "-", "+")).map(([id]) => id);
    for (const subscriber of subscribers) {
      await until(() => subscriber.events.length >= stored.length, {
        what: "the last event",
      });
      expect(subscriber.events.map(({ data }) => data.id)).toEqual(stored);
    }
  },
  300_000,
);
