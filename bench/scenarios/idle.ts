/**
 * The memory of a parked poll and an idle event stream in the gateway: how much its resident size and its heap grow, after
 * a collection, when it gets twice `count` of them. The growth is also reported for each half, because V8's young
 * generation grows in one of them. Limit: the kernel's socket buffers are not included.
 */
import { type Figure, figure } from "../figures.ts";
import { Gateway, type Usage } from "../gateway.ts";
import type { Options } from "../options.ts";
import { Remote } from "../remote.ts";
import type { Stage } from "../stage.ts";
import { until } from "../until.ts";

/**
 * Makes the gateway ready for `count` polls or streams, with their agents and tokens, which are not part of the cost of
 * each. Resolves with a function that makes it hold those from `first` to `end`, until the function that this one resolves
 * with is called.
 */
type Prepare = (gateway: Gateway, count: number) => Promise<Hold>;
type Hold = (first: number, end: number) => Promise<() => Promise<void>>;

/** Bytes each: of all, and of the first and the second half. */
interface Growth {
  readonly rss: number;
  readonly heap: number;
  readonly first: number;
  readonly second: number;
}

export async function idle(stage: Stage, options: Options, say: (line: string) => void): Promise<Figure[]> {
  const pollers = Math.max(...options.pollers);
  const kinds = [
    ["poller_bytes", preparePolls, pollers, { pollers: 2 * pollers }],
    ["sse_bytes", prepareStreams, options.streams, { streams: 2 * options.streams }],
  ] as const;
  const figures: Figure[] = [];
  for (const [name, prepare, count, more] of kinds) {
    const rounds: Growth[] = [];
    for (let round = 1; round <= Math.min(options.rounds, 3); round += 1) {
      // A new process each: one that has held thousands before already has the memory.
      const gateway = await Gateway.start(stage);
      try {
        rounds.push(await grow(gateway, await prepare(gateway, 2 * count), count));
      } finally {
        await gateway.stop();
        await stage.redis.flushall("ASYNC");
      }
      const { rss, heap, first, second } = rounds.at(-1) ?? { rss: 0, heap: 0, first: 0, second: 0 };
      say(
        `idle ${round}: ${name} ${rss.toFixed(0)} of resident size (${first.toFixed(0)} the first half, ` +
          `${second.toFixed(0)} the second), ${heap.toFixed(0)} of heap`,
      );
    }
    const mean = (of: (growth: Growth) => number): number =>
      Math.round(rounds.reduce((sum, growth) => sum + of(growth), 0) / rounds.length);
    const parts = {
      heap_bytes: mean(({ heap }) => heap),
      first_half: mean(({ first }) => first),
      second_half: mean(({ second }) => second),
    };
    figures.push(
      figure(
        name,
        "bytes",
        rounds.map(({ rss }) => rss),
        { ...more, ...parts },
      ),
    );
  }
  return figures;
}

async function grow(gateway: Gateway, hold: Hold, count: number): Promise<Growth> {
  // Code that runs for the first time takes memory too, which is not part of the cost of each.
  const release = await hold(0, Math.min(count, 200));
  await release();
  const before = await settled(gateway);
  const releaseFirst = await hold(0, count);
  const half = await settled(gateway);
  const releaseSecond = await hold(count, 2 * count);
  const after = await settled(gateway);
  await releaseSecond();
  await releaseFirst();
  return {
    rss: (after.rss - before.rss) / (2 * count),
    heap: (after.heap - before.heap) / (2 * count),
    first: (half.rss - before.rss) / count,
    second: (after.rss - half.rss) / count,
  };
}

const settled = (gateway: Gateway): Promise<Usage> => gateway.usage({ gc: true });

const preparePolls: Prepare = async (gateway, count) => {
  const polls = await gateway.agents(count, "idle");
  return async (first, end) => {
    const worker = new Remote("worker");
    await worker.tell("start", {
      client: "bare",
      url: gateway.url,
      polls: polls.slice(first, end),
      bytes: 64,
    });
    await gateway.parked(end, worker);
    return async () => {
      await worker.tell("stop");
      await gateway.parked(first, worker);
      await worker.end();
    };
  };
};

/** A single caller may not have so many. */
const STREAMS_OF_A_CALLER = 100;

const prepareStreams: Prepare = async (gateway, count) => {
  const callers = Array.from({ length: Math.ceil(count / STREAMS_OF_A_CALLER) }, (_, index) => index);
  const tokens = await Promise.all(callers.map((caller) => gateway.token(`caller:bench-${caller}`)));
  return async (first, end) => {
    const subscriber = new Remote("subscriber");
    const some = tokens.slice(first / STREAMS_OF_A_CALLER, Math.ceil(end / STREAMS_OF_A_CALLER));
    await subscriber.tell("start", { url: gateway.url, tokens: some, streams: end - first });
    await until(async () => (await gateway.streams()) === end, `${end} streams`);
    return async () => {
      await subscriber.end();
      await until(async () => (await gateway.streams()) === first, `${first} streams`);
    };
  };
};
