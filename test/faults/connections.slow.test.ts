import { setMaxListeners } from "node:events";
import { Redis } from "ioredis";
import { expect, inject } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { onOneRedis } from "../support/on-cluster.ts";
import { until } from "../support/until.ts";

const POLLERS = 1_000;

/** Connections of gateways on this database, by name. */
async function connections(db: number): Promise<string[]> {
  const redis = new Redis(inject("redisSocket"));
  const list = String(await redis.client("LIST"));
  redis.disconnect();
  const mine = list.split("\n").filter((line) => line.includes(` db=${db} `));
  return mine.flatMap((line) => / name=(errand:\S+)/.exec(line)?.[1] ?? []).sort();
}

onOneRedis("it counts the connections of one server")(
  "1 000 parked polls need no more Redis connections than one",
  async () => {
    const { url, db, redis, gateway } = await startBroker();
    const api = client(url);
    const names = Array.from({ length: POLLERS }, (_, n) => `agent-${n}`);
    for (let n = 0; n < POLLERS; n += 50) {
      await Promise.all(names.slice(n, n + 50).map((name) => api.agent(name)));
    }

    const leave = new AbortController();
    setMaxListeners(0, leave.signal);
    const poll = (name: string) =>
      fetch(`${url}/v1/agents/${name}/leases`, {
        method: "POST",
        headers: { authorization: `Bearer ${OPERATOR}`, "content-type": "application/json" },
        body: '{"wait_seconds":60}',
        signal: leave.signal,
      }).catch(() => null);
    const waiting = () => names.reduce((sum, name) => sum + gateway.broker.handoff.polls.count(name), 0);

    const polls = [poll("agent-0")];
    await until(() => waiting() === 1);
    const withOne = await connections(db);
    const roles = ["blocking", "bulk", "commands", "jobs", "subscriber"];
    expect(withOne).toEqual(roles.map((role) => `errand:${role}`));

    for (const name of names.slice(1)) polls.push(poll(name));
    await until(() => waiting() === POLLERS);
    expect(await connections(db)).toEqual(withOne);

    // They are parked: a delegation reaches its poll at once.
    await api.delegate("agent-777");
    await until(() => waiting() === POLLERS - 1);
    expect(await redis.zcard("{errand:0}:live:agent-777:working")).toBe(1);
    leave.abort();
    await Promise.all(polls);
    await until(() => waiting() === 0);
  },
  300_000,
);
