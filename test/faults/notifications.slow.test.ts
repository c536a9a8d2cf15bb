/**
 * Many subscriptions and events, with a receiver that is down, one that never answers and one that is hostile, while two
 * gateways are killed in turn: the others get each notification, in order, and a repeat only with the same id.
 * `NOTIFY_CALLERS=50 NOTIFY_EVENTS=10000` is 1,000 subscriptions and 10,000 events.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { LIMITS } from "../../src/schema/limits.ts";
import { as, client, freshDb } from "../support/broker.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { listen } from "../support/listen.ts";
import { until } from "../support/until.ts";

const CALLERS = Number(process.env.NOTIFY_CALLERS ?? 6);
const EVENTS = Number(process.env.NOTIFY_EVENTS ?? 600);
const AGENTS = LIMITS.subscriptions.value;
const BATCH = 100;

interface Got {
  readonly id: string;
  readonly delegation: string;
  readonly lateMs: number;
}

/** By path: what a receiver accepted. `/slow` never answers, `/hostile` answers without an end. */
async function startReceivers() {
  const got = new Map<string, Got[]>();
  const answer = (request: IncomingMessage, response: ServerResponse, body: string) => {
    const path = request.url ?? "";
    if (path.startsWith("/slow")) return;
    if (path.startsWith("/hostile")) {
      response.writeHead(200, { "content-type": "text/plain" });
      const flood = () => {
        while (!response.destroyed && response.write("x".repeat(65_536)));
      };
      response.on("drain", flood);
      return flood();
    }
    const { id, delegation_id: delegation, at } = JSON.parse(body);
    got.set(path, [...(got.get(path) ?? []), { id, delegation, lateMs: Date.now() - Date.parse(at) }]);
    response.writeHead(204).end();
  };
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (chunk: string) => {
      body += chunk;
    });
    request.on("end", () => answer(request, response, body));
  });
  const port = await listen(server);
  return { base: `http://127.0.0.1:${port}`, got };
}

/** The last three agents of a caller notify receivers that do not take it. */
function placeOf(base: string, caller: number, agent: number): string {
  if (agent === AGENTS - 1) return "http://127.0.0.1:9/down";
  // Hosts of their own, as they are in the world: calls to one host are limited.
  if (agent === AGENTS - 2) return `${base.replace("127.0.0.1", "127.0.0.2")}/slow/${caller}`;
  if (agent === AGENTS - 3) return `${base.replace("127.0.0.1", "127.0.0.3")}/hostile/${caller}`;
  return `${base}/${caller}/${agent}`;
}

test("a receiver that is down, slow or hostile delays no other, and no notification is lost while gateways die", {
  timeout: 120_000 + EVENTS * 40,
}, async () => {
  const { base, got } = await startReceivers();
  const db = await freshDb();
  const start = () => startGatewayProcess(db, { sweepEveryMs: 250, callbackAllow: ["127.0.0.0/8"] });
  const gateways = [await start(), await start()];
  const url = () => gateways.find((one) => one.isAlive())?.url ?? "";
  const admin = () => client(url());
  const agents = Array.from({ length: AGENTS }, (_, n) => `a${n}`);
  for (const name of agents) await admin().agent(name, { limits: { max_waiting: 10_000 } });
  const tokens = await Promise.all(
    Array.from({ length: CALLERS }, async (_, n) => (await as(url(), `caller:c${n}`)).token),
  );
  for (const [caller, token] of tokens.entries()) {
    await Promise.all(
      agents.map(async (agent, n) => {
        const made = await client(url(), token).call("POST", "/v1/subscriptions", {
          events: ["ended"],
          filter: { agents: [agent] },
          deliver: [{ kind: "webhook", url: placeOf(base, caller, n) }],
          digest_above: 100,
        });
        expect(made.status).toBe(201);
      }),
    );
  }
  const ended = new Map<string, string[]>();
  let killing = true;
  let kills = 0;
  const killer = (async () => {
    for (let turn = 0; killing; turn = 1 - turn) {
      // The time between two kills is the load, nothing is waited for.
      await sleep(2_000 + Math.random() * 2_000);
      await gateways[turn]?.kill();
      kills += 1;
      gateways[turn] = await start();
    }
  })();
  /** A request that a dying gateway did not answer is sent again. */
  const retried = <T>(call: () => Promise<T>) => until(() => call(), { what: "an answer" });
  for (let sent = 0, turn = 0; sent < EVENTS; sent += BATCH, turn += 1) {
    const caller = turn % CALLERS;
    const token = tokens[caller] ?? "";
    const delegations = Array.from({ length: BATCH }, (_, n) => ({
      ...{ target: agents[n % AGENTS], task: "x", idempotency_key: `${sent + n}` },
    }));
    const { results } = await retried(async () => {
      const { status, body } = await client(url(), token).call("POST", "/v1/delegations/batch", {
        delegations,
      });
      return status < 300 && body.results.every((one: { delegation?: unknown }) => one.delegation)
        ? body
        : undefined;
    });
    for (const [n, { delegation }] of results.entries()) {
      const path = `/${caller}/${n % AGENTS}`;
      ended.set(path, [...(ended.get(path) ?? []), delegation.id]);
      await retried(
        async () => (await client(url(), token).cancel(delegation.id)).status === 200 || undefined,
      );
    }
  }
  killing = false;
  await killer;
  const healthy = [...ended].filter(([path]) => Number(path.split("/")[2]) < AGENTS - 3);
  await until(
    () =>
      healthy.every(
        ([path, ids]) =>
          new Set((got.get(path) ?? []).map(({ delegation }) => delegation)).size === ids.length,
      ),
    { what: "all notifications", timeoutMs: 90_000 },
  );
  const all = healthy.flatMap(([path]) => got.get(path) ?? []);
  const ids = new Map<string, Set<string>>();
  for (const { id, delegation } of all) ids.set(delegation, (ids.get(delegation) ?? new Set()).add(id));
  for (const own of ids.values()) expect(own.size).toBe(1);
  for (const [path, sent] of healthy) {
    const first = [...new Set((got.get(path) ?? []).map(({ delegation }) => delegation))];
    expect(first).toEqual(sent);
  }
  const late = all.map(({ lateMs }) => lateMs).sort((a, b) => a - b);
  const share = (part: number) => late[Math.floor(late.length * part)];
  console.log(
    `${CALLERS * AGENTS} subscriptions, ${EVENTS} events, ${kills} gateways killed: ${ids.size} told, ${all.length - ids.size} repeats with the same id; late by ${share(0.5)} ms (p50), ${share(0.99)} ms (p99)`,
  );
});
