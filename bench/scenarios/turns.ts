/**
 * Delegators that take turns: the cycle with many waiting callers at one agent, when all are one delegator and when they are
 * several, and the same on BullMQ directly. Limit: every caller waits for its answer, so each lane has one delegation at a time.
 */

import { LIMITS } from "../../src/schema/limits.ts";
import { type Figure, figure } from "../figures.ts";
import { Gateway } from "../gateway.ts";
import { BullLoad, ErrandLoad, perSecond, type Window } from "../load.ts";
import type { Options } from "../options.ts";
import type { Stage } from "../stage.ts";

/** Callers for each poll: most of them wait in the queue. */
const CALLERS = 20;

export async function turns(stage: Stage, options: Options, say: (line: string) => void): Promise<Figure[]> {
  await stage.fsync("always");
  const gateway = await Gateway.start(stage);
  const [agent] = await gateway.agents(1, "turns");
  if (!agent) throw new Error("no agent");
  const polls = Array.from({ length: options.lanes }, () => agent);
  const callers = Math.min(CALLERS * options.lanes, LIMITS.polls.value);
  const counts = [1, 10, callers];
  const loads = new Map<number, ErrandLoad>();
  const bull = new BullLoad(stage);
  const shape = { lanes: callers, bytes: options.bytes, rate: null };
  const atWork = { ...shape, working: options.lanes };
  const ours = new Map<number, Window[]>(counts.map((count) => [count, []]));
  const theirs: Window[] = [];
  try {
    for (const count of counts) loads.set(count, await ErrandLoad.start(stage, gateway, polls, count));
    // The first round compiles the code and is not counted.
    for (let round = 0; round <= options.rounds; round += 1) {
      const said: string[] = [];
      for (const [count, load] of loads) {
        const window = await load.window({ ...shape, wait: true }, options);
        if (round > 0) ours.get(count)?.push(window);
        said.push(`${count} ${perSecond(window).toFixed(0)}/s`);
      }
      const window = await bull.window(atWork, options);
      if (round > 0) theirs.push(window);
      say(`turns ${round}/${options.rounds}: ${said.join(", ")}, bullmq ${perSecond(window).toFixed(0)}/s`);
    }
  } finally {
    await Promise.all([...loads.values(), bull].map((load) => load.end()));
    await gateway.stop();
    await stage.redis.flushall("ASYNC");
  }
  const of = { callers, polls: options.lanes };
  return [
    ...[...ours].flatMap(([delegators, windows]) => ourFigures(windows, theirs, { delegators, ...of })),
    figure("turns_bullmq_per_s", "1/s", theirs.map(perSecond), of),
  ];
}

function ourFigures(
  windows: readonly Window[],
  theirs: readonly Window[],
  more: Readonly<Record<string, number>>,
): Figure[] {
  const ratios = windows.map((window, round) => {
    const rival = theirs[round];
    return rival ? perSecond(window) / perSecond(rival) : 0;
  });
  return [
    figure("turns_cycle_per_s", "1/s", windows.map(perSecond), more),
    figure("turns_ratio_vs_bullmq", "ratio", ratios, more),
    figure(
      "turns_gateway_cpu_us_per_delegation",
      "us",
      windows.map(({ gateway_cpu_us, asked }) => gateway_cpu_us / asked.count),
      more,
    ),
    figure(
      "turns_redis_us_per_delegation",
      "us",
      windows.map(({ redis, asked }) => redis.cpu_us / asked.count),
      more,
    ),
  ];
}
