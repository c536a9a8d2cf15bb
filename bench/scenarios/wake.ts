/**
 * How fast a parked poll gets its work when thousands are parked, each for its own agent: from the caller's request to
 * the lease at the agent. Limit: the clients that hold the polls run on the same cores.
 */
import { type Figure, figure } from "../figures.ts";
import { Gateway } from "../gateway.ts";
import { ErrandLoad } from "../load.ts";
import type { Options } from "../options.ts";
import type { Stage } from "../stage.ts";

const RATE = 180;

export async function wake(stage: Stage, options: Options, say: (line: string) => void): Promise<Figure[]> {
  await stage.fsync("always");
  const gateway = await Gateway.start(stage);
  const figures: Figure[] = [];
  const connections: number[] = [];
  try {
    const polls = await gateway.agents(Math.max(...options.pollers), "idle");
    for (const pollers of options.pollers) {
      const load = await ErrandLoad.start(stage, gateway, polls.slice(0, pollers));
      const p50: number[] = [];
      const p99: number[] = [];
      try {
        for (let round = 1; round <= options.rounds; round += 1) {
          const shape = { lanes: options.lanes, bytes: options.bytes, rate: RATE, wait: false };
          const { worked } = await load.window(
            shape,
            { ...options, seconds: options.seconds * 2 },
            async () => {
              connections.push(await stage.connections());
            },
          );
          p50.push(worked.p50_ms);
          p99.push(worked.p99_ms);
          say(
            `wake ${round}/${options.rounds} ${pollers} pollers: p50 ${worked.p50_ms.toFixed(2)} ms, ` +
              `p99 ${worked.p99_ms.toFixed(2)} ms of ${worked.count}`,
          );
        }
      } finally {
        await load.end();
      }
      const more = { pollers, per_second: RATE };
      figures.push(figure("wake_p50_ms", "ms", p50, more), figure("wake_p99_ms", "ms", p99, more));
    }
  } finally {
    await gateway.stop();
    await stage.redis.flushall("ASYNC");
  }
  const most = Math.max(...options.pollers);
  return [
    ...figures,
    figure("redis_connections", "connections", [Math.max(...connections)], { pollers: most }),
  ];
}
