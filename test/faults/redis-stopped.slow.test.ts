import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { type Answer, client, startBroker } from "../support/broker.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { startOwnRedis } from "../support/own-redis.ts";
import { retryUntilAnswered } from "../support/retry.ts";
import { until } from "../support/until.ts";

const LEASES = 50;
const LEASE_SECONDS = 4;
const BEAT_MS = (LEASE_SECONDS * 1_000) / 4;
const PAUSE_MS = 5_000;

test("Redis stopped for 5 s while 50 leases of 4 s are held: at most one redelivery each, one reply each", async () => {
  const own = await startOwnRedis();
  const { url, another } = await startBroker({ redis: own.target, sweepEveryMs: 500 });
  const second = await another({ sweepEveryMs: 500 });
  const apis = [client(url), client(second.url)];
  const at = (n: number) => apis[n % apis.length] ?? client(url);
  await at(0).agent("scout", { limits: { max_attempts: 10, lease_seconds: LEASE_SECONDS } });
  const ids: string[] = [];
  for (let n = 0; n < LEASES; n += 1)
    ids.push((await at(n).delegate("scout", { task: `task ${n}` })).body.id);

  const matched: string[] = [];
  const lost: string[] = [];
  let held = 0;
  let beating = 0;
  let finish = false;
  /** Holds one lease at a time, sends heartbeats while it works, and drops a lease that is lost. */
  const worker = async (n: number) => {
    while (matched.length < LEASES) {
      const { leases } = (await retryUntilAnswered(() => at(n).lease("scout", { wait_seconds: 1 }))).body;
      for (const { lease_id, delegation } of leases) {
        held += 1;
        let answer: Answer | null = null;
        while (answer?.status !== 409 && !finish) {
          await sleep(BEAT_MS);
          answer = await at(n).heartbeat(lease_id, { progress: { message: "still here" } });
          if (answer.status === 200) beating += 1;
        }
        answer = await retryUntilAnswered(() => at(n).reply(lease_id, { text: `by ${lease_id}` }));
        if (answer.status === 200) matched.push(delegation.id);
        else {
          expect(answer.body.code).toBe("lease_lost");
          lost.push(delegation.id);
        }
      }
    }
  };
  const workers = Promise.all(Array.from({ length: LEASES }, (_, n) => worker(n)));
  await until(() => held === LEASES && beating >= 2 * LEASES, {
    what: "50 beating leases",
  });

  own.signal("SIGSTOP");
  await sleep(PAUSE_MS);
  own.signal("SIGCONT");
  // Every lease gets further heartbeats, from its holder or from the next one.
  const before = beating;
  await until(() => beating >= before + 2 * LEASES, { what: "50 beating leases" });
  finish = true;
  await workers;

  expect(matched.sort()).toEqual(ids.sort());
  for (const id of ids) {
    const events = await eventsOf(at(0), id);
    checkHistory(events, "finished");
    const leased = events.filter(({ status }) => status === "leased").length;
    expect(leased).toBeLessThanOrEqual(2);
    expect(lost.filter((one) => one === id).length).toBe(leased - 1);
  }
}, 120_000);
