/**
 * `npm run prove -- failover`: kills a master under load, again and again, then accounts for every acknowledgment: each delegation
 * has ended, once, or is lost by the rules of docs/growing.md. Prints a report as Markdown; exits with 1 if a rule is
 * broken. Limit: one machine, so a replica is as near as it can be, and little is lost.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { readArguments } from "../../scripts/arguments.mjs";
import { startGateway } from "../../src/gateway/gateway.ts";
import { Shards } from "../../src/redis/shards.ts";
import { isTerminal, stateSchema } from "../../src/schema/delegation.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { type Answer, client, OPERATOR } from "../support/broker.ts";
import { type RedisCluster, startRedisCluster } from "../support/redis-cluster.ts";
import { testRedisBinary } from "../support/redis-server.ts";
import { openStream, type Stream } from "../support/sse.ts";
import { until } from "../support/until.ts";

const HELP = `npm run prove -- failover [options]

  --kills N     how often a master is killed                     (10)
  --wait N      ERRAND_REDIS_WAIT_REPLICAS                       (0)
  --timeout MS  cluster-node-timeout of the nodes                (2000)
`;
const SHARDS = 4;
const LOAD_MS = 2_000;
/** The most delegations that wait for each agent. */
const AHEAD = 8;
/** No request that does not wait for work may take longer. */
const HANG_MS = 10_000;
const END_MS = 120_000;

const { values } = readArguments(HELP, {
  kills: { type: "string", default: "10" },
  wait: { type: "string", default: "0" },
  timeout: { type: "string", default: "2000" },
});

interface Sent {
  readonly key: string;
  readonly id: string;
}
interface Replied {
  readonly id: string;
  readonly fence: number;
}

/** What clients saw. */
class Observed {
  readonly sent: Sent[] = [];
  readonly replied: Replied[] = [];
  /** Delegations with a reply that got no answer, or 503: it may have been made, seen, and then lost. */
  readonly unanswered = new Set<string>();
  readonly odd: string[] = [];
  readonly refused = { not_executed: 0, unknown: 0 };
  slowestMs = 0;

  async timed(call: () => Promise<Answer>, isPoll = false): Promise<Answer | null> {
    const at = performance.now();
    const answer = await call();
    if (!isPoll) this.slowestMs = Math.max(this.slowestMs, performance.now() - at);
    const { status, body } = answer;
    if (status === 503) {
      this.refused[body?.details?.outcome === "not_executed" ? "not_executed" : "unknown"] += 1;
      return null;
    }
    if (![200, 202, 204, 404, 409].includes(status)) this.odd.push(`${status} ${JSON.stringify(body)}`);
    return answer;
  }
}

const fenceOf = (leaseId: string): number => Number(leaseId.slice(leaseId.lastIndexOf("_") + 1));

function load(urls: readonly string[], agent: string, observed: Observed) {
  const apis = urls.map((url) => client(url));
  const mine = { open: 0 };
  let isStopped = false;
  let isDone = false;
  const api = (n: number) => apis[n % apis.length] ?? client("");
  const send = async (sender: number) => {
    for (let n = 0; !isStopped; n += 1) {
      if (mine.open >= AHEAD) {
        await sleep(10);
        n -= 1;
        continue;
      }
      const key = `${agent}-${sender}-${n}`;
      mine.open += 1;
      for (let tries = 0; ; tries += 1) {
        const answer = await observed.timed(() =>
          api(tries + sender).delegate(agent, { task: key }, { "idempotency-key": key }),
        );
        if (answer?.status === 202 || answer?.status === 200) {
          observed.sent.push({ key, id: String(answer.body.id) });
          break;
        }
        await sleep(50);
      }
    }
  };
  const work = async (worker: number) => {
    for (let n = worker; !isDone; n += 1) {
      const answer = await observed.timed(
        () => api(n).lease(agent, { wait_seconds: 1, lease_seconds: 5, max: 2 }),
        true,
      );
      if (answer === null) await sleep(50);
      for (const { lease_id, delegation } of answer?.body?.leases ?? []) {
        for (;;) {
          const replied = await observed.timed(() => api(n).reply(lease_id));
          if (replied === null) {
            observed.unanswered.add(String(delegation.id));
            await sleep(50);
            continue;
          }
          if (replied.status === 200) {
            observed.replied.push({ id: String(delegation.id), fence: fenceOf(String(lease_id)) });
            mine.open -= 1;
          }
          break;
        }
      }
    }
  };
  const sending = Promise.all([send(0), send(1)]);
  const working = Promise.all([work(0), work(1)]);
  return {
    stopSending: async () => {
      isStopped = true;
      await sending;
    },
    stop: async () => {
      isDone = true;
      await working;
    },
  };
}

/** A viewer of everything, which resumes by its cursor. */
function watchEvents(url: string) {
  const streams: Stream[] = [];
  let isStopped = false;
  let resets = 0;
  const run = async () => {
    let last = "0";
    while (!isStopped) {
      const stream = await openStream(`${url}/v1/events`, { token: OPERATOR, lastEventId: last });
      streams.push(stream);
      while (stream.isOpen() && !isStopped) await sleep(20);
      stream.close();
      last = stream.events.findLast(({ id }) => id !== "")?.id ?? last;
      await sleep(50);
    }
  };
  const done = run();
  return {
    /** By delegation, the ids of the final events that arrived. */
    finals: (): Map<string, Set<string>> => {
      const found = new Map<string, Set<string>>();
      for (const { event, data } of streams.flatMap(({ events }) => events)) {
        if (event === "RESET") resets += 1;
        const state = stateSchema.safeParse(data?.state);
        if (!state.success || !isTerminal(state.data)) continue;
        const id = String(data.delegation_id);
        found.set(id, (found.get(id) ?? new Set()).add(`${data.seq} ${data.at}`));
      }
      return found;
    },
    resets: () => resets,
    stop: async () => {
      isStopped = true;
      await done;
    },
  };
}

const median = (list: readonly number[]): number =>
  [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)] ?? 0;

/** Returns how long the shards of the master accepted no work, ms. */
async function killOnce(
  cluster: RedisCluster,
  url: string,
  key: string,
  waitReplicas: number,
): Promise<number> {
  const master = await cluster.masterOf(key);
  const at = performance.now();
  master.signal("SIGKILL");
  /** Only with all masters. */
  const isReady = async () => {
    const answer = await fetch(`${url}/readyz`).catch(() => null);
    return answer !== null && z.object({ status: z.string() }).parse(await answer.json()).status === "ready";
  };
  await until(async () => !(await isReady()), { what: "an outage" });
  // The new master has no replica, so the old one must come back before anything is confirmed.
  if (waitReplicas > 0) {
    await cluster.masterOf(key);
    await master.restart();
  }
  await until(isReady, { what: "the end of the outage" });
  const outage = performance.now() - at;
  if (waitReplicas === 0) await master.restart();
  await cluster.untilHealthy();
  return outage;
}

async function main(): Promise<number> {
  const kills = Number(values.kills);
  const waitReplicas = Number(values.wait);
  const cluster = await startRedisCluster({
    binary: await testRedisBinary(),
    nodeTimeoutMs: Number(values.timeout),
    more: ["appendonly yes", "appendfsync always", "cluster-require-full-coverage no"],
  });
  const gateways = await Promise.all(
    [1, 2].map(() =>
      startGateway({
        redis: { url: cluster.url },
        host: "127.0.0.1",
        port: 0,
        operatorToken: OPERATOR,
        shards: SHARDS,
        retentionMs: 3_600_000,
        maxBodyBytes: 1_048_576,
        allowedOrigins: [],
        log: createLog("error", (line) => process.stderr.write(line)),
        waitReplicas,
      }),
    ),
  );
  try {
    const urls = gateways.map(({ port }) => `http://127.0.0.1:${port}`);
    const [url = ""] = urls;
    const api = client(url);
    const shards = new Shards(SHARDS);
    const agents = shards.all.map((_, shard) => {
      const names = Array.from({ length: 100 }, (_n, n) => `agent-${n}`);
      return names.find((name) => shards.indexOfAgent(name) === shard) ?? "";
    });
    for (const agent of agents) await api.agent(agent, { limits: { max_attempts: 20 } });
    const observed = new Observed();
    const watching = watchEvents(url);
    const loads = agents.map((agent) => load(urls, agent, observed));
    const outages: number[] = [];
    for (let n = 0; n < kills; n += 1) {
      await sleep(LOAD_MS);
      outages.push(await killOnce(cluster, url, shards.at(n % SHARDS).events, waitReplicas));
      process.stderr.write(`kill ${n + 1}: ${Math.round(outages.at(-1) ?? 0)} ms\n`);
    }
    await sleep(LOAD_MS);
    await Promise.all(loads.map(({ stopSending }) => stopSending()));
    const records = await ended(api, observed.sent);
    await Promise.all(loads.map(({ stop }) => stop()));
    await sleep(1_000);
    await watching.stop();
    const kept = [...records].flatMap(([id, record]) => (record === null ? [] : [id]));
    return report({
      kills,
      waitReplicas,
      outages,
      observed,
      records,
      finals: watching.finals(),
      all: await listAll(api),
      resets: watching.resets(),
      badHistories: await countBadHistories(api, kept),
    });
  } finally {
    await Promise.all(gateways.map((gateway) => gateway.close({ idleGrace: false })));
    await cluster.stop();
  }
}

type Api = ReturnType<typeof client>;
// Untyped: records as they are on the wire.
type Wire = Answer["body"];

/** The records of all that was acknowledged, once each has ended; null: it does not exist. */
async function ended(api: Api, sent: readonly Sent[]): Promise<Map<string, Wire>> {
  const found = new Map<string, Wire>();
  const read = async ({ id }: Sent) => {
    const { status, body } = await api.get(id);
    if (status === 404) found.set(id, null);
    else if (status === 200 && isTerminal(stateSchema.parse(body.state))) found.set(id, body);
  };
  const began = Date.now();
  for (;;) {
    const open = sent.filter(({ id }) => !found.has(id));
    if (open.length === 0 || Date.now() - began > END_MS) return found;
    for (let from = 0; from < open.length; from += 20)
      await Promise.all(open.slice(from, from + 20).map(read));
    await sleep(200);
  }
}

/** How many of the delegations have stored events that are not numbered, or not exactly one final event, at the end. */
async function countBadHistories(api: Api, ids: readonly string[]): Promise<number> {
  let bad = 0;
  const check = async (id: string) => {
    const events: Wire[] = (await api.events(id)).body?.events ?? [];
    const finals = events.filter(({ state }) => isTerminal(stateSchema.parse(state)));
    const isNumbered = events.every(({ seq }, at) => seq === at + 1);
    if (!isNumbered || finals.length !== 1 || finals[0] !== events.at(-1)) bad += 1;
  };
  for (let from = 0; from < ids.length; from += 20) await Promise.all(ids.slice(from, from + 20).map(check));
  return bad;
}

async function listAll(api: Api): Promise<Wire[]> {
  const found: Wire[] = [];
  for (let cursor = ""; ; ) {
    const { body } = await api.call("GET", `/v1/delegations?limit=100${cursor}`);
    found.push(...body.delegations);
    if (!body.next_cursor) return found;
    cursor = `&cursor=${encodeURIComponent(body.next_cursor)}`;
  }
}

interface Run {
  readonly kills: number;
  readonly waitReplicas: number;
  readonly outages: readonly number[];
  readonly observed: Observed;
  readonly records: Map<string, Wire>;
  readonly finals: Map<string, Set<string>>;
  readonly all: readonly Wire[];
  readonly resets: number;
  readonly badHistories: number;
}

function report({
  badHistories,
  kills,
  waitReplicas,
  outages,
  observed,
  records,
  finals,
  all,
  resets,
}: Run): number {
  const { sent, replied, unanswered, odd, refused, slowestMs } = observed;
  const lostSubmits = sent.filter(({ id }) => records.get(id) === null);
  const unfinished = sent.filter(({ id }) => !records.has(id));
  // A reply that is not lost ended its delegation, so no lease was granted after it.
  const lastFence = new Map<string, number>();
  for (const { id, fence } of replied) lastFence.set(id, Math.max(fence, lastFence.get(id) ?? 0));
  const lostReplies = new Set(
    replied
      .filter(({ id, fence }) => fence !== lastFence.get(id) || records.get(id) === null)
      .map(({ id }) => id),
  );
  const twice = [...finals].filter(([, events]) => events.size > 1).map(([id]) => id);
  const unexplained = twice.filter((id) => !lostReplies.has(id) && !unanswered.has(id));
  const tasks = all.map(({ message, task_preview }) => String(task_preview ?? message?.parts?.[0]?.text));
  const repeated = tasks.length - new Set(tasks).size;
  const notAlone = waitReplicas > 0 ? lostSubmits.length + lostReplies.size : 0;
  const broken = [
    [unfinished.length, "acknowledged delegations have neither ended nor are they lost"],
    [unexplained.length, "delegations have a second final event without a reply that was lost or unanswered"],
    [badHistories, "stored histories have not exactly one final event, at their end"],
    [odd.length, `answers were not expected: ${odd.slice(0, 3).join(" | ")}`],
    [slowestMs > HANG_MS ? 1 : 0, `a request took ${Math.round(slowestMs)} ms`],
    [notAlone, "acknowledgments were lost although a replica had confirmed them"],
  ].filter(([count]) => count !== 0);
  const rows: readonly (readonly [string, string | number])[] = [
    ["`ERRAND_REDIS_WAIT_REPLICAS`", waitReplicas],
    ["masters killed", kills],
    [
      "from the kill until all shards accept work again, median (most)",
      `${Math.round(median(outages))} ms (${Math.round(Math.max(...outages))} ms)`,
    ],
    ["submits acknowledged", sent.length],
    ["of these lost", lostSubmits.length],
    ["replies acknowledged", replied.length],
    ["of these lost, so the work was done again", lostReplies.size],
    [
      "delegations with two final events seen by a subscriber, the first one of a lost or an unanswered reply",
      twice.length,
    ],
    ["delegations created twice for one idempotency key", repeated],
    ["refused requests: not executed, unknown", `${refused.not_executed}, ${refused.unknown}`],
    ["longest request, polls excepted", `${Math.round(slowestMs)} ms`],
    ["`RESET`s of the subscriber", resets],
    ["rules broken", broken.length],
  ];
  process.stdout.write(
    `| | |\n| --- | --- |\n${rows.map(([name, value]) => `| ${name} | ${value} |`).join("\n")}\n`,
  );
  for (const [count, what] of broken) process.stderr.write(`BROKEN: ${count} ${what}\n`);
  return broken.length === 0 ? 0 : 1;
}

process.exitCode = await main();
