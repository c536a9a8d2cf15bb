/**
 * One gateway with thousands of parked polls and event streams: their cost at rest, the latency of another request beside
 * them, and the time until all are back after the gateway was killed (`crowd`) or restarted (`many`). A stream that then
 * misses an event, or gets one twice, fails the run. Limit: the clients run on the same cores.
 */
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { busiestSecond } from "../busiest-second.ts";
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
/** Delegations of each caller: while all rest, around the end of the gateway, and after it. */
const DELEGATIONS = 4;
const READ_EVERY_MS = 25;
/** Of the gateway, besides connections of the crowd. */
const OTHER_FILES = 600;
const PATIENCE_MS = 120_000;
/** All of `many`. */
const MANY_MS = 235_000;
/** V8 collects garbage for a while after a load. That is a cost of opening, not of rest. */
const SETTLE_SECONDS = 30;
/** The delegations are due long after the run, so no poll ever gets one. */
const DELAY_SECONDS = 86_400;

const pageSchema = z.object({ events: z.array(z.object({ id: z.string() })), cursor: z.string() });

interface Plan {
  /** Polls of as many agents, and as many streams. */
  readonly count: number;
  /** The pause before the measurement at rest. */
  readonly settleSeconds: number;
  readonly restSeconds: number;
  readonly readSeconds: number;
  readonly end: "kill" | "stop";
}

interface Measured {
  readonly percent: number;
  readonly rss: number;
  readonly readMs: number;
  /** Until every stream and every poll is open again. */
  readonly backSeconds: number;
  readonly streamsBackSeconds: number;
  /** The p99 of another request meanwhile, from the first one that is answered. */
  readonly readMsMeanwhile: number;
  /** The most connections of the crowd that were made within one second. */
  readonly busiest: number;
  readonly rssAfter: number;
  readonly events: number;
}

export async function crowd(stage: Stage, options: Options, say: (line: string) => void): Promise<Figure[]> {
  const { crowd: count, seconds } = options;
  const times = { settleSeconds: 0, restSeconds: seconds * 5, readSeconds: seconds * 5 };
  const plan: Plan = { count, ...times, end: "kill" };
  const { percent, rss, readMs, streamsBackSeconds, events } = await measure(stage, plan, say);
  const more = { polls: count, streams: count };
  return [
    figure("crowd_cpu_percent", "% of a core", [percent], { ...more, rss_mb: megabytes(rss) }),
    figure("crowd_get_p99_ms", "ms", [readMs], more),
    figure("crowd_back_s", "s", [streamsBackSeconds], { ...more, events }),
  ];
}

export async function many(stage: Stage, options: Options, say: (line: string) => void): Promise<Figure[]> {
  const count = Math.min(options.many, await mostByOpenFiles());
  if (count < options.many) {
    say(`many: a process may open too few files for ${options.many} polls and streams; ${count} of each`);
  }
  const restSeconds = Math.min(60, options.seconds * 15);
  const settleSeconds = Math.min(SETTLE_SECONDS, restSeconds / 2);
  const plan: Plan = { count, settleSeconds, restSeconds, readSeconds: restSeconds / 4, end: "stop" };
  const found = await inTime(measure(stage, plan, say));
  const more = { polls: count, streams: count };
  return [
    figure("many_rss_mb", "MB", [megabytes(found.rss)], { ...more, after: megabytes(found.rssAfter) }),
    figure("many_cpu_percent", "% of a core", [found.percent], { ...more, seconds: restSeconds }),
    figure("many_get_p99_ms", "ms", [found.readMs], more),
    figure("many_back_s", "s", [found.backSeconds], { ...more, events: found.events }),
    figure("many_busiest_second", "connections", [found.busiest], more),
    figure("many_back_get_p99_ms", "ms", [found.readMsMeanwhile], more),
  ];
}

async function inTime<T>(run: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`many: not done within ${MANY_MS / 1000} s`)), MANY_MS);
  });
  return Promise.race([run, late]).finally(() => clearTimeout(timer));
}

const megabytes = (bytes: number): number => Math.round(bytes / 1e6);

/** The gateway needs a descriptor for each connection. */
async function mostByOpenFiles(): Promise<number> {
  const limits = await readFile("/proc/self/limits", "utf8").catch(() => "");
  const most = Number(/^Max open files\s+\d+\s+(\d+)/m.exec(limits)?.[1] ?? Number.POSITIVE_INFINITY);
  return Math.floor((most - OTHER_FILES) / 2);
}

async function measure(stage: Stage, plan: Plan, say: (line: string) => void): Promise<Measured> {
  const { count } = plan;
  await stage.fsync("always");
  const first = await Gateway.start(stage);
  // One process for each kind, because each connection is an open file there, too.
  const [streaming, polling] = [new Remote("crowd"), new Remote("crowd")];
  const clients = [streaming, polling];
  let gateway = first;
  try {
    const polls = await first.agents(count, "idle");
    const [target = { agent: "" }] = polls;
    const callers = await Promise.all(
      Array.from({ length: Math.ceil(count / STREAMS_OF_ONE) }, (_, index) =>
        first.token(`caller:crowd-${index}`),
      ),
    );
    const streams = Array.from({ length: count }, (_, index) => callers[index % callers.length] ?? "");
    await streaming.tell("start", { url: first.url, streams, polls: [] });
    await polling.tell("start", { url: first.url, streams: [], polls });
    await settled(first, streaming, count, polls);
    await delegateAll(first, callers, target.agent);
    say(`${count} polls and ${count} streams are open`);

    await sleep(plan.settleSeconds * 1000);
    const rest = await atRest(first, plan.restSeconds);
    const readMs = await otherRequests(first, target.agent, plan.readSeconds);
    say(`${rest.percent.toFixed(1)} % of a core at rest, another request's p99 ${readMs.toFixed(1)} ms`);

    // Some are accepted and some are cut: the accepted ones must reach every stream.
    const around = delegateAll(first, callers, target.agent).catch(() => {});
    await sleep(20);
    for (const one of clients) await one.tell("countAgain");
    const endedAt = clock();
    await (plan.end === "kill" ? first.kill() : first.stop());
    await around;
    gateway = await Gateway.start(stage, first);
    const others = new Others(gateway, target.agent);
    await delegateAll(gateway, callers, target.agent);
    await until(async () => (await openAt(streaming)) === count, "streams back", PATIENCE_MS);
    const streamsBackSeconds = (clock() - endedAt) / 1000;
    await settled(gateway, streaming, count, polls);
    const backSeconds = (clock() - endedAt) / 1000;
    const readMsMeanwhile = await others.end();
    const connectedAt = await Promise.all(clients.map((one) => one.ask("connectedAt", z.array(z.number()))));
    const expected: Record<string, string[]> = {};
    for (const token of callers) expected[token] = await allEvents(gateway, token);
    const events = Object.values(expected).reduce((sum, ids) => sum + ids.length, 0);
    await until(async () => (await wrong(streaming, expected)) === null, "every event at every stream").catch(
      async () => {
        throw new Error(`a stream has a gap or a repeat: ${await wrong(streaming, expected)}`);
      },
    );
    say(`all back after ${backSeconds.toFixed(1)} s, ${events} events, none missed and none twice`);
    return {
      ...{ percent: rest.percent, rss: rest.rss, readMs, backSeconds, streamsBackSeconds, readMsMeanwhile },
      busiest: busiestSecond(connectedAt.flat()),
      rssAfter: (await gateway.usage()).rss,
      events,
    };
  } finally {
    await Promise.all(clients.map((one) => one.tell("stop").catch(() => {})));
    await Promise.all(clients.map((one) => one.end()));
    await gateway.stop();
    await stage.redis.flushall("ASYNC");
  }
}

const openAt = (clients: Remote) => clients.ask("open", z.number());

const wrong = (clients: Remote, expected: Record<string, string[]>): Promise<string | null> =>
  clients.ask("wrong", z.string().nullable(), expected);

/** All are connected, and the cost of connecting is over. */
async function settled(
  gateway: Gateway,
  streaming: Remote,
  streams: number,
  polls: readonly Poll[],
): Promise<void> {
  await until(
    async () => {
      return (await openAt(streaming)) === streams && (await gateway.usage()).parked === polls.length;
    },
    "the crowd",
    PATIENCE_MS,
  );
}

async function delegateAll(gateway: Gateway, callers: readonly string[], target: string): Promise<void> {
  const body = { target, task: "x", delay_seconds: DELAY_SECONDS };
  for (let round = 0; round < DELEGATIONS; round += 1) {
    await Promise.all(callers.map((token) => gateway.call("POST", "/v1/delegations", body, token)));
  }
}

async function atRest(gateway: Gateway, seconds: number): Promise<{ percent: number; rss: number }> {
  const before = await gateway.usage();
  const since = clock();
  await sleep(seconds * 1000);
  const after = await gateway.usage();
  return { percent: (after.cpu_us - before.cpu_us) / (clock() - since) / 10, rss: after.rss };
}

const p99 = (times: number[]): number =>
  quantile(
    times.sort((a, b) => a - b),
    0.99,
  );

/** The p99 of one reader that sends a request now and then. */
async function otherRequests(gateway: Gateway, agent: string, seconds: number): Promise<number> {
  const others = new Others(gateway, agent);
  await sleep(seconds * 1000);
  return others.end();
}

/** A reader that sends a request now and then, until it is ended. */
class Others {
  readonly #running: Promise<number[]>;
  #isEnough = false;

  constructor(gateway: Gateway, agent: string) {
    this.#running = this.#run(gateway, agent);
    this.#running.catch(() => {});
  }

  async #run(gateway: Gateway, agent: string): Promise<number[]> {
    const times: number[] = [];
    while (!this.#isEnough || times.length === 0) {
      const since = clock();
      await gateway.call("GET", `/v1/agents/${agent}`);
      times.push(clock() - since);
      await sleep(READ_EVERY_MS);
    }
    return times;
  }

  /** The p99 of the requests so far. */
  async end(): Promise<number> {
    this.#isEnough = true;
    return p99(await this.#running);
  }
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
