/**
 * One gateway with thousands of parked polls and event streams: their cost at rest, the latency of another request beside
 * them, and the time until all have reconnected after the gateway was killed. A stream that then misses an event, or gets
 * one twice, fails the run. Limit: the clients run on the same cores.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { type Figure, figure } from "../figures.ts";
import { Gateway, type Poll } from "../gateway.ts";
import { quantile } from "../numbers.ts";
import type { Options } from "../options.ts";
import { Remote } from "../remote.ts";
import type { Stage } from "../stage.ts";
import { clock } from "../tally.ts";
import { until } from "../until.ts";

/** Streams of one caller; a single caller may not have thousands. */
const STREAMS_OF_ONE = 100;
/** Delegations of each caller: while all rest, around the kill, and after it. */
const DELEGATIONS = 4;
const READ_EVERY_MS = 25;
const TARGET = "quiet";
const PATIENCE_MS = 120_000;

const pageSchema = z.object({ events: z.array(z.object({ id: z.string() })), cursor: z.string() });

export async function crowd(stage: Stage, options: Options, say: (line: string) => void): Promise<Figure[]> {
  await stage.fsync("always");
  const count = options.crowd;
  const first = await Gateway.start(stage);
  const clients = new Remote("crowd");
  let gateway = first;
  try {
    const polls = await first.agents(count, "idle");
    await first.agents(1, TARGET);
    const callers = await Promise.all(
      Array.from({ length: Math.ceil(count / STREAMS_OF_ONE) }, (_, index) =>
        first.token(`caller:crowd-${index}`),
      ),
    );
    const streams = Array.from({ length: count }, (_, index) => callers[index % callers.length] ?? "");
    await clients.tell("start", { url: first.url, streams, polls });
    await settled(first, clients, count, polls);
    await delegateAll(first, callers);

    const rest = await atRest(first, options.seconds * 5);
    const read = await otherRequests(first, options.seconds * 5);
    say(`crowd: ${rest.percent.toFixed(1)} % of a core at rest, another request's p99 ${read.toFixed(1)} ms`);

    // Some are accepted and some are cut: the accepted ones must reach every stream.
    const around = delegateAll(first, callers).catch(() => {});
    await sleep(20);
    await first.kill();
    const killedAt = clock();
    await around;
    gateway = await Gateway.start(stage, first);
    await delegateAll(gateway, callers);
    await until(
      async () => (await clients.ask("streams", z.number())) === count,
      "streams back",
      PATIENCE_MS,
    );
    const back = (clock() - killedAt) / 1000;
    await settled(gateway, clients, count, polls);
    const expected: Record<string, string[]> = {};
    for (const token of callers) expected[token] = await allEvents(gateway, token);
    const total = Object.values(expected).reduce((sum, ids) => sum + ids.length, 0);
    await until(async () => (await wrong(clients, expected)) === null, "every event at every stream").catch(
      async () => {
        throw new Error(`crowd: a stream has a gap or a repeat: ${await wrong(clients, expected)}`);
      },
    );
    say(`crowd: all back after ${back.toFixed(1)} s, ${total} events, none missed and none twice`);
    const more = { polls: count, streams: count };
    return [
      figure("crowd_cpu_percent", "% of a core", [rest.percent], {
        ...more,
        rss_mb: Math.round(rest.rss / 1e6),
      }),
      figure("crowd_get_p99_ms", "ms", [read], more),
      figure("crowd_back_s", "s", [back], { ...more, events: total }),
    ];
  } finally {
    await clients.tell("stop").catch(() => {});
    await clients.end();
    await gateway.stop();
    await stage.redis.flushall("ASYNC");
  }
}

const wrong = (clients: Remote, expected: Record<string, string[]>): Promise<string | null> =>
  clients.ask("wrong", z.string().nullable(), expected);

/** All are connected, and the cost of connecting is over. */
async function settled(
  gateway: Gateway,
  clients: Remote,
  streams: number,
  polls: readonly Poll[],
): Promise<void> {
  await until(
    async () => {
      const open = await clients.ask("streams", z.number());
      return open === streams && (await gateway.usage()).parked === polls.length;
    },
    "the crowd",
    PATIENCE_MS,
  );
}

/** Each caller delegates to an agent that nobody polls for. */
async function delegateAll(gateway: Gateway, callers: readonly string[]): Promise<void> {
  for (let round = 0; round < DELEGATIONS; round += 1) {
    await Promise.all(
      callers.map((token) =>
        gateway.call("POST", "/v1/delegations", { target: `${TARGET}-0`, task: "x" }, token),
      ),
    );
  }
}

async function atRest(gateway: Gateway, seconds: number): Promise<{ percent: number; rss: number }> {
  const before = await gateway.usage();
  const since = clock();
  await sleep(seconds * 1000);
  const after = await gateway.usage();
  return { percent: (after.cpu_us - before.cpu_us) / (clock() - since) / 10, rss: after.rss };
}

/** The p99 of one reader that sends a request now and then. */
async function otherRequests(gateway: Gateway, seconds: number): Promise<number> {
  const times: number[] = [];
  for (const end = clock() + seconds * 1000; clock() < end; ) {
    const since = clock();
    await gateway.call("GET", `/v1/agents/${TARGET}-0`);
    times.push(clock() - since);
    await sleep(READ_EVERY_MS);
  }
  return quantile(
    times.sort((a, b) => a - b),
    0.99,
  );
}

/** Ids of all events that a caller may see, oldest first. */
async function allEvents(gateway: Gateway, token: string): Promise<string[]> {
  const ids: string[] = [];
  for (let after = "0"; ; ) {
    const path = `/v1/events?after=${after}&wait_seconds=0&limit=1000`;
    const { events, cursor } = pageSchema.parse(await gateway.call("GET", path, undefined, token));
    if (events.length === 0) return ids;
    ids.push(...events.map(({ id }) => id));
    after = cursor;
  }
}
