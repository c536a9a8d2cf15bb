import { connect } from "node:net";
import { expect, test } from "vitest";
import { type Answer, client, request } from "../support/broker.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { freshDir, serveIn } from "../support/program.ts";
import { allowStalls } from "../support/stalls.ts";
import { subscribe } from "../support/subscriber.ts";
import { until } from "../support/until.ts";

type Api = ReturnType<typeof client>;

const AGENTS = 6;
const LOAD = 120;

/** A stopping gateway may refuse a request; the client then uses the other gateway. */
const isRefused = (error: unknown): boolean => codeOf(error) === "ECONNREFUSED";

/**
 * A gateway that stops serves its idle connections for another 300 ms. A client on a busy machine may read their end
 * only after it sent the next request on one.
 */
const IDLE_GRACE_MS = 300;
const isClosed = (error: unknown): boolean => codeOf(error) === "UND_ERR_SOCKET";

function codeOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && "code" in cause ? String(cause.code) : "";
}

test("SIGTERM of one of two gateways under load: exit 0 within 10 s, no request fails, no work is lost", async () => {
  const withStalls = allowStalls();
  const dir = freshDir();
  const stays = await serveIn(dir);
  const leaves = await serveIn(dir);
  const { token } = stays;
  const names = Array.from({ length: AGENTS }, (_, n) => `agent-${n}`);
  for (const name of names) await client(stays.url, token).agent(name);

  const failures: string[] = [];
  let refused = 0;
  let stoppedAt = Number.POSITIVE_INFINITY;
  let enough = false;
  const isStopped = () => performance.now() >= stoppedAt;
  /** First at the gateway that stops, until it says so, then at the other. */
  const send = async (what: string, call: (api: Api) => Promise<Answer>): Promise<Answer | null> => {
    const [first = stays, ...others] = refused > 0 ? [stays] : [leaves, stays];
    const ask = async (url: string): Promise<Answer | "refused"> => {
      const isLate = performance.now() > stoppedAt + IDLE_GRACE_MS;
      const answer = await call(client(url, token)).catch((error: unknown) => {
        if (isStopped() && (isRefused(error) || (isLate && isClosed(error)))) return "refused" as const;
        throw error;
      });
      if (answer === "refused") return answer;
      return isStopped() && answer.status === 503 && answer.body.code === "shutting_down"
        ? "refused"
        : answer;
    };
    try {
      let answer = await ask(first.url);
      for (const { url } of others) {
        if (answer !== "refused") break;
        refused += 1;
        answer = await ask(url);
      }
      if (answer !== "refused" && answer.status < 400) return answer;
      failures.push(`${what}: ${answer === "refused" ? answer : answer.body.code}`);
    } catch (error) {
      failures.push(`${what}: ${String(error)} ${codeOf(error)}`);
    }
    return null;
  };

  const accepted = new Set<string>();
  const replied = new Map<string, number>();
  const delegate = async (n: number) => {
    for (let i = 0; !enough; i += 1) {
      const task = `${n}.${i}`;
      const idempotent = { "idempotency-key": task };
      const answer = await send("delegate", (api) => api.delegate(names[n] ?? "", { task }, idempotent));
      if (answer) accepted.add(answer.body.id);
    }
  };
  const work = async (n: number) => {
    const ask = { wait_seconds: 1 };
    while (!enough || replied.size < accepted.size) {
      const leased = await send("lease", (api) => api.lease(names[n] ?? "", ask));
      for (let leases = leased?.body.leases ?? []; leases.length > 0; ) {
        const [{ lease_id, delegation }] = leases;
        const answer = await send("reply", (api) => api.reply(lease_id, { next: ask }));
        replied.set(delegation.id, (replied.get(delegation.id) ?? 0) + 1);
        leases = answer?.body.leases ?? [];
      }
    }
  };
  const wait = async () => {
    while (!enough) {
      const id = await until(() => [...accepted].at(-1));
      await send("wait", (api) => api.get(id, "?wait_seconds=5"));
    }
  };
  // By SSE and by JSON; both continue at the other gateway from their cursor.
  const stream = subscribe([leaves.url, stays.url], token);
  const endsCleanly = fetch(`${leaves.url}/v1/events`, {
    headers: { accept: "text/event-stream", authorization: `Bearer ${token}` },
  }).then((response) => response.text());
  const polled: string[] = [];
  const page = async () => {
    let cursor = "0";
    for (let more = true; more; ) {
      const path = `/v1/events?after=${cursor}&wait_seconds=1&limit=1000`;
      const accept = { accept: "application/json" };
      const answer = await send("events", (api) => api.call("GET", path, undefined, accept));
      if (!answer) continue;
      polled.push(...answer.body.events.map(({ id }: { id: string }) => id));
      cursor = answer.body.cursor;
      more = !enough || answer.body.events.length > 0;
    }
  };
  const load = Promise.all([...names.flatMap((_, n) => [delegate(n), work(n), wait()]), page()]);

  await until(() => replied.size > LOAD, { what: "load" });
  stoppedAt = performance.now();
  leaves.child.kill("SIGTERM");
  expect(await leaves.ended()).toBe(0);
  expect(performance.now() - stoppedAt).toBeLessThan(withStalls(10_000));
  const size = replied.size;
  await until(() => replied.size > size + LOAD, { what: "load at the other" });
  enough = true;
  await load;
  // Not cut off: the end of the body arrived.
  expect(await endsCleanly).toContain("DELEGATION_COMPLETE");

  expect(failures).toEqual([]);
  expect(refused).toBeGreaterThan(0);
  expect([...replied.keys()].sort()).toEqual([...accepted].sort());
  expect([...replied.values()].every((count) => count === 1)).toBe(true);
  const api = client(stays.url, token);
  const histories = [...accepted].map(async (id) => {
    const events = await eventsOf(api, id);
    checkHistory(events, "finished");
    return events;
  });
  const all = (await Promise.all(histories)).flat();
  expect(polled).toHaveLength(all.length);
  expect(new Set(polled).size).toBe(all.length);
  await until(() => stream.events.length >= all.length, { what: "the last event" });
  expect(stream.events.map(({ id }) => id)).toEqual(polled);
  expect((await request(stays.url, "GET", "/readyz", { token: null })).status).toBe(200);
}, 300_000);

test("a connection that was used before the stop gets a shutting_down answer", async () => {
  const { url, token, child } = await serveIn(freshDir());
  const api = client(url, token);
  await api.agent("scout");
  const { port } = new URL(url);
  const socket = connect(Number(port), "127.0.0.1");
  let heard = "";
  socket.on("data", (bytes) => {
    heard += bytes;
  });
  socket.on("error", () => {});
  const ask = `GET /v1/agents/scout HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`;
  socket.write(ask);
  await until(() => heard.includes('"counts"'));
  const parked = api.lease("scout", { wait_seconds: 20 });
  await until(async () => (await api.call("GET", "/v1/agents/scout")).body.presence.pollers === 1);
  child.kill("SIGTERM");
  expect((await parked).body).toEqual({ leases: [] });
  heard = "";
  socket.write(ask);
  await until(() => heard.includes("shutting_down"), { what: "an answer" });
  expect(heard).toMatch(/^connection: close\r$/im);
}, 300_000);
