/** The latency of a cycle without load: a hundred a second, with the first HTTP client. Limit: one agent, one gateway. */
import { type Figure, figure } from "../figures.ts";
import { Gateway } from "../gateway.ts";
import { BullLoad, ErrandLoad } from "../load.ts";
import type { Options } from "../options.ts";
import { FSYNCS, type Fsync, type Stage } from "../stage.ts";

const RATE = 100;

export async function paced(stage: Stage, options: Options, say: (line: string) => void): Promise<Figure[]> {
  const gateway = await Gateway.start(stage);
  const [agent] = await gateway.agents(1, "paced");
  if (!agent) throw new Error("no agent");
  const errand = await ErrandLoad.start(
    stage,
    gateway,
    Array.from({ length: options.lanes }, () => agent),
  );
  const bull = new BullLoad(stage);
  const [client = "bare"] = options.clients;
  const shape = { client, lanes: options.lanes, bytes: options.bytes, rate: RATE, wait: true };
  const p50: Record<Fsync, { errand: number[]; bull: number[] }> = {
    always: { errand: [], bull: [] },
    everysec: { errand: [], bull: [] },
  };
  try {
    await errand.window({ ...shape, rate: null }, options);
    await bull.window({ ...shape, rate: null }, options);
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const fsync of FSYNCS) {
        await stage.fsync(fsync);
        const ours = (await errand.window(shape, options)).asked.p50_ms;
        const theirs = (await bull.window(shape, options)).asked.p50_ms;
        p50[fsync].errand.push(ours);
        p50[fsync].bull.push(theirs);
        say(
          `paced ${round}/${options.rounds} ${fsync}: errand ${ours.toFixed(2)} ms, bullmq ${theirs.toFixed(2)} ms`,
        );
      }
    }
  } finally {
    await Promise.all([errand.end(), bull.end()]);
    await gateway.stop();
    await stage.redis.flushall("ASYNC");
  }
  return FSYNCS.flatMap((fsync) => [
    figure("cycle_p50_ms_at_100_per_s", "ms", p50[fsync].errand, { fsync, client }),
    figure("bullmq_direct_p50_ms_at_100_per_s", "ms", p50[fsync].bull, { fsync }),
  ]);
}
