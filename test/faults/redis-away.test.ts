/** Redis goes away in every way that a network knows, and comes back. Limit: one gateway, on 127.0.0.1. */
import { expect, inject, onTestFinished, test } from "vitest";
import { type Answer, as, client, request, startBroker } from "../support/broker.ts";
import { insist } from "../support/insist.ts";
import { type Fault, startProxy } from "../support/proxy.ts";
import { openStream } from "../support/sse.ts";
import { subscribe } from "../support/subscriber.ts";
import { until } from "../support/until.ts";

const ANSWER_MS = 3_000;
const BACK_MS = 3_000;

interface Timed {
  readonly what: string;
  readonly answer: Answer;
  readonly tookMs: number;
  readonly beforeHealing: boolean;
}

async function scenario(kind: Fault, lastsMs: number) {
  const proxy = await startProxy(inject("redisSocket"));
  const broker = await startBroker();
  const redis = { url: `redis://127.0.0.1:${proxy.port}/${broker.db}` };
  const { url } = await broker.another({ redis, sweepEveryMs: 500 });
  const api = client(url);
  for (const name of ["scout", "parked", "held", "queued"]) await api.agent(name);
  const worker = await as(url, "agent:held");
  const { id } = (await api.delegate("held")).body;
  const [held] = (await worker.lease("held")).body.leases;
  const queued = (await api.delegate("queued")).body.id;
  const stream = subscribe([url], worker.token);
  await until(() => stream.events.length >= 2);

  let healed = false;
  const log: Timed[] = [];
  const keys: string[] = [];
  const send = async (what: string, call: () => Promise<Answer>) => {
    const at = performance.now();
    const answer = await call();
    log.push({ what, answer, tookMs: performance.now() - at, beforeHealing: !healed });
  };
  const wave = (n: number) => {
    const key = `key-${n}`;
    keys.push(key);
    return [
      send("delegate", () => api.delegate("scout", { task: key }, { "idempotency-key": key })),
      send("delegate plain", () => api.delegate("scout", { task: "plain" })),
      send("get", () => api.get(id)),
      send("get wait", () => api.get(id, "?wait_seconds=20")),
      send("agent", () => worker.call("GET", "/v1/agents/scout")),
      send("agents", () => api.call("GET", "/v1/agents")),
      send("put", () => api.agent("scout")),
      send("lease", () => api.lease("queued", { wait_seconds: 0 })),
      send("lease wait", () => api.lease("queued", { wait_seconds: 20 })),
      send("heartbeat", () => worker.heartbeat(held.lease_id)),
      send("heartbeat wait", () => worker.heartbeat(held.lease_id, { wait_seconds: 20 })),
      send("progress", () => worker.heartbeat(held.lease_id, { progress: { done: n } })),
      send("token", () => api.call("POST", "/v1/tokens", { principal: "caller:bob" })),
      send("events", () => api.call("GET", "/v1/events", undefined, { accept: "application/json" })),
      send("events 0", () => api.events(id)),
      send("stream", async () => {
        const s = await openStream(`${url}/v1/events`);
        s.close();
        return { status: s.status, headers: s.headers, body: null };
      }),
      send("readyz", () => request(url, "GET", "/readyz", { token: null })),
    ];
  };
  await api.agent("busy");
  const traffic = Array.from({ length: 20 }, async (_, n) => {
    for (let i = 0; !healed; i += 1) {
      await send("t delegate", () =>
        api.delegate("busy", { task: "busy" }, { "idempotency-key": `busy-${n}-${i}` }),
      );
      let leases: { lease_id: string }[] = [];
      await send("t lease", async () => {
        const a = await api.lease("busy", { wait_seconds: 0, max: 4 });
        leases = a.body.leases ?? [];
        return a;
      });
      for (const l of leases)
        await send("t reply", () => api.reply(l.lease_id, { next: { wait_seconds: 0, max: 3 } }));
    }
  });
  void traffic;
  await until(() => log.length > 200);
  await proxy.fault(kind);
  const startedAt = performance.now();
  const waves: Promise<unknown>[] = [];
  for (let n = 0; performance.now() - startedAt < lastsMs; n += 1) {
    waves.push(...wave(n));
    await until(() => performance.now() - startedAt > Math.min(lastsMs, (n + 1) * 700), {
      timeoutMs: 60_000,
    });
  }
  healed = true;
  await proxy.heal();
  const healedAt = performance.now();
  const since = () => Math.round(performance.now() - healedAt);
  const laps: Record<string, number> = {};
  const lap = (name: string) => {
    laps[name] = since();
  };
  await Promise.all([
    until(async () => (await request(url, "GET", "/readyz", { token: null })).status === 200, {
      timeoutMs: 60_000,
    }).then(() => lap("ready")),
    insist(() => api.delegate("scout", { task: "after" }, { "idempotency-key": "after" }), 60_000).then(() =>
      lap("delegated"),
    ),
    until(async () => (await insist(() => api.lease("scout", { wait_seconds: 1 }), 60_000)).body.leases[0], {
      timeoutMs: 60_000,
    }).then(async ({ lease_id }) => {
      lap("leased");
      await insist(() => api.reply(lease_id));
      lap("replied");
    }),
    (async () => {
      const n = stream.events.length;
      await until(() => stream.events.length > n, { timeoutMs: 60_000 });
      lap("live");
    })(),
    (async () => {
      const d = await insist(() => api.delegate("held", { task: "live" }), 60_000);
      lap("live-delegated");
      await until(() => stream.events.some(({ data }) => data.delegation_id === d.body.id), {
        timeoutMs: 60_000,
      });
      lap("live-own");
    })(),
    until(
      async () =>
        (await client(broker.url).get(queued)).body.state === "working" ||
        (await insist(() => api.lease("queued", { wait_seconds: 1 }), 60_000)).body.leases[0],
      { timeoutMs: 60_000 },
    ).then(() => lap("queued")),
    (async () => {
      for (const key of keys) {
        const a = await insist(
          () => api.delegate("scout", { task: key }, { "idempotency-key": key }),
          60_000,
        );
        expect(a.status).toBeLessThan(300);
      }
      lap("retried");
    })(),
  ]);
  console.log(kind, lastsMs, JSON.stringify(laps));
  const slow = log
    .filter((one) => one.tookMs > ANSWER_MS)
    .map((one) => `${one.what} ${Math.round(one.tookMs)} ${one.answer.status}`);
  console.log("slow", JSON.stringify(slow));
  const odd = log
    .filter((one) => !one.what.startsWith("t ") && one.beforeHealing && one.answer.status !== 503)
    .map(
      (one) => `${one.what} ${Math.round(one.tookMs)} ${one.answer.status} ${one.answer.body?.code ?? ""}`,
    );
  console.log("odd", JSON.stringify(odd));
  console.log(
    "gateway log",
    [
      ...new Set(
        broker.log.map((l) => {
          const { level, msg, err } = JSON.parse(l);
          return `${level} ${msg} ${err ?? ""}`;
        }),
      ),
    ].join("\n"),
  );
}
void onTestFinished;
void BACK_MS;

test.each([
  ["refuse", 3000],
  ["hold", 1000],
  ["hold", 4000],
  ["swallow", 1000],
  ["swallow", 4000],
  ["swallow", 7000],
  ["swallow-answers", 1000],
  ["swallow-answers", 4000],
] as const)(
  "x %s %i",
  async (kind, ms) => {
    await scenario(kind, ms);
  },
  120_000,
);
