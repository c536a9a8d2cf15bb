import { expect, test } from "vitest";
import { type Answer, client, request } from "../support/broker.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { freshDir, serveIn } from "../support/program.ts";
import { openStream } from "../support/sse.ts";
import { until } from "../support/until.ts";

const AGENTS = 6;
const LOAD = 300;

/** What a stop may do to a request: the next gateway is asked. */
const isRefused = (error: unknown): boolean =>
  error instanceof Error &&
  error.cause instanceof Error &&
  "code" in error.cause &&
  error.cause.code === "ECONNREFUSED";

test("SIGTERM of one of two gateways under load: exit 0 within 10 s, nothing fails, nothing is lost", async () => {
  const dir = freshDir();
  const stays = await serveIn(dir);
  const leaves = await serveIn(dir);
  const { token } = stays;
  const names = Array.from({ length: AGENTS }, (_, n) => `agent-${n}`);
  for (const name of names) await client(stays.url, token).agent(name);

  const failures: string[] = [];
  let refused = 0;
  let stopped = false;
  let enough = false;
  /** First at the one that leaves, until it says that it does, then at the other. */
  const send = async (what: string, call: (api: ReturnType<typeof client>) => Promise<Answer>) => {
    for (const { url } of refused > 0 ? [stays] : [leaves, stays]) {
      try {
        const answer = await call(client(url, token));
        if (answer.status === 503 && answer.body.code === "shutting_down" && stopped) refused += 1;
        else {
          if (answer.status >= 400) failures.push(`${what}: ${answer.status} ${answer.body.code}`);
          return answer;
        }
      } catch (error) {
        if (isRefused(error) && stopped) refused += 1;
        else {
          const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : "";
          failures.push(`${what}: ${String(error)} ${cause}`);
          return null;
        }
      }
    }
    return null;
  };

  const accepted = new Set<string>();
  const replied = new Map<string, number>();
  const delegate = async (n: number) => {
    for (let i = 0; !enough; i += 1) {
      const answer = await send("delegate", (api) => api.delegate(names[n] ?? "", { task: `${n}.${i}` }));
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
  /** By SSE and by JSON; both move on to the other gateway with the cursor that they had. */
  const streamed: string[] = [];
  const watch = async (url: string, lastEventId: string): Promise<void> => {
    const stream = await openStream(`${url}/v1/events`, { token, lastEventId });
    await until(() => !stream.isOpen() || enough, { timeoutMs: 60_000 });
    if (stream.isOpen()) await until(() => streamed.length + stream.events.length >= polled.length);
    stream.close();
    streamed.push(...stream.events.map(({ id }) => id));
    if (!enough) await watch(stays.url, streamed.at(-1) ?? "0");
  };
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
  const watched = watch(leaves.url, "0");

  await until(() => replied.size > LOAD, { timeoutMs: 20_000, what: "load" });
  stopped = true;
  const stoppedAt = performance.now();
  leaves.child.kill("SIGTERM");
  expect(await leaves.ended()).toBe(0);
  expect(performance.now() - stoppedAt).toBeLessThan(10_000);
  const size = replied.size;
  await until(() => replied.size > size + LOAD, { timeoutMs: 20_000, what: "load at the other" });
  enough = true;
  await Promise.all([load, watched]);

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
  expect(streamed).toEqual(polled);
  expect((await request(stays.url, "GET", "/readyz", { token: null })).status).toBe(200);
}, 60_000);
