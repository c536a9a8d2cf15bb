/**
 * The memory of a parked poll and an idle event stream in the gateway: resident size and heap after a collection, with
 * and without them. Limit: the kernel's socket buffers are not included.
 */
import { type Figure, figure } from "../figures.ts";
import { Gateway, type Usage } from "../gateway.ts";
import type { Options } from "../options.ts";
import { Remote } from "../remote.ts";
import type { Stage } from "../stage.ts";
import { until } from "../until.ts";

/** Makes the gateway hold this many; resolves with a function that ends them. */
type Hold = (gateway: Gateway, count: number) => Promise<() => Promise<void>>;

interface Growth {
  readonly rss: number;
  readonly heap: number;
}

export async function idle(stage: Stage, options: Options, say: (line: string) => void): Promise<Figure[]> {
  const pollers = Math.max(...options.pollers);
  const kinds = [
    ["poller_bytes", holdPolls, pollers, { pollers }],
    ["sse_bytes", holdStreams, options.streams, { streams: options.streams }],
  ] as const;
  const figures: Figure[] = [];
  for (const [name, hold, count, more] of kinds) {
    const rounds: Growth[] = [];
    for (let round = 1; round <= Math.min(options.rounds, 3); round += 1) {
      // A new process each: one that has held thousands before already has the memory.
      const gateway = await Gateway.start(stage);
      try {
        rounds.push(await grow(gateway, hold, count));
      } finally {
        await gateway.stop();
        await stage.redis.flushall("ASYNC");
      }
      const { rss, heap } = rounds.at(-1) ?? { rss: 0, heap: 0 };
      say(`idle ${round}: ${name} ${rss.toFixed(0)} of resident size, ${heap.toFixed(0)} of heap`);
    }
    const heap = Math.round(rounds.reduce((sum, growth) => sum + growth.heap, 0) / rounds.length);
    figures.push(
      figure(
        name,
        "bytes",
        rounds.map(({ rss }) => rss),
        { ...more, heap_bytes: heap },
      ),
    );
  }
  return figures;
}

async function grow(gateway: Gateway, hold: Hold, count: number): Promise<Growth> {
  // Code that runs for the first time takes memory too, which is not part of the cost of each.
  const release = await hold(gateway, Math.min(count, 200));
  await release();
  const before = await settled(gateway);
  const releaseAll = await hold(gateway, count);
  const after = await settled(gateway);
  await releaseAll();
  return { rss: (after.rss - before.rss) / count, heap: (after.heap - before.heap) / count };
}

const settled = (gateway: Gateway): Promise<Usage> => gateway.usage({ gc: true });

const holdPolls: Hold = async (gateway, count) => {
  const polls = await gateway.agents(count, "idle");
  const worker = new Remote("worker");
  await worker.tell("start", { client: "bare", url: gateway.url, polls, bytes: 64 });
  await gateway.parked(count, worker);
  return async () => {
    await worker.tell("stop");
    await gateway.parked(0, worker);
    await worker.end();
  };
};

const holdStreams: Hold = async (gateway, count) => {
  const subscriber = new Remote("subscriber");
  // From several callers: a single one may not have so many.
  const callers = Array.from({ length: Math.ceil(count / 100) }, (_, index) => `caller:bench-${index}`);
  const tokens = await Promise.all(callers.map((caller) => gateway.token(caller)));
  await subscriber.tell("start", { url: gateway.url, tokens, streams: count });
  await until(async () => (await gateway.streams()) === count, `${count} streams`);
  return async () => {
    await subscriber.end();
    await until(async () => (await gateway.streams()) === 0, "the end of the streams");
  };
};
