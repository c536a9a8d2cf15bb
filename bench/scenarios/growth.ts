/**
 * What the cycle loses as the broker fills: with a million finished delegations, and with ten thousand agents. Each runs
 * against an empty broker, with its own Redis and gateway, in alternating rounds. Limit: both Redis run all the time; the
 * idle one uses almost no CPU.
 */
import { type Figure, figure } from "../figures.ts";
import { Gateway } from "../gateway.ts";
import { keep } from "../kept.ts";
import { ErrandLoad, perSecond, type Window } from "../load.ts";
import { median } from "../numbers.ts";
import type { Options } from "../options.ts";
import { Stage } from "../stage.ts";

interface Side {
  readonly stage: Stage;
  readonly gateway: Gateway;
  readonly load: ErrandLoad;
}

async function open(stage: Stage, agents: number, lanes: number): Promise<Side> {
  const gateway = await Gateway.start(stage);
  const made = await gateway.agents(agents, "growth");
  // As many polls as lanes; with more agents than lanes, one for each agent.
  const polls = Array.from(
    { length: Math.max(agents, lanes) },
    (_, index) => made[index % agents] ?? [],
  ).flat();
  return { stage, gateway, load: await ErrandLoad.start(stage, gateway, polls) };
}

async function close({ gateway, load, stage }: Side): Promise<void> {
  await load.end();
  await gateway.stop();
  await stage.redis.flushall("ASYNC");
}

/** Of the gateway and its Redis, per delegation. */
const cpuOf = ({ asked, gateway_cpu_us, redis }: Window): number =>
  (gateway_cpu_us + redis.cpu_us) / asked.count;

interface Growth {
  readonly ratios: readonly number[];
  /** The same by CPU instead of throughput: more than 1 if the larger broker needs more. */
  readonly more: { readonly cpu_ratio: number };
}

/** Shows where a difference comes from. */
function costs(window: Window): string {
  const each = (us: number) => (us / window.asked.count).toFixed(0);
  return `${perSecond(window).toFixed(0)}/s, gateway ${each(window.gateway_cpu_us)} us, Redis ${each(window.redis.cpu_us)} us`;
}

/** The ratio of each round: the larger broker's throughput by the smaller's. */
async function compare(
  what: string,
  [small, large]: readonly [Side, Side],
  options: Options,
  say: (line: string) => void,
): Promise<Growth> {
  const shape = { lanes: options.lanes, bytes: options.bytes, rate: null, wait: true };
  const ratios: number[] = [];
  const cpu: number[] = [];
  for (let round = 0; round <= options.rounds; round += 1) {
    const without = await small.load.window(shape, options);
    const within = await large.load.window(shape, options);
    // The first round compiles the code and is not counted.
    if (round === 0) continue;
    ratios.push(perSecond(within) / perSecond(without));
    cpu.push(cpuOf(within) / cpuOf(without));
    say(`${what} ${round}/${options.rounds}: ${costs(within)}; without: ${costs(without)}`);
  }
  return { ratios, more: { cpu_ratio: Number(median(cpu).toPrecision(4)) } };
}

export async function agents(stage: Stage, options: Options, say: (line: string) => void): Promise<Figure[]> {
  const other = await Stage.open();
  const sides: Side[] = [];
  try {
    for (const each of [stage, other]) await each.fsync("always");
    const small = await open(stage, 1, options.lanes);
    sides.push(small);
    const large = await open(other, options.agents, options.lanes);
    sides.push(large);
    const { ratios, more } = await compare("agents", [small, large], options, say);
    return [figure("cycle_ratio_10k_agents", "ratio", ratios, { agents: options.agents, ...more })];
  } finally {
    for (const side of sides) await close(side);
    await other.close();
  }
}

export async function kept(stage: Stage, options: Options, say: (line: string) => void): Promise<Figure[]> {
  const other = await Stage.open();
  const sides: Side[] = [];
  try {
    for (const each of [stage, other]) await each.fsync("always");
    const small = await open(stage, 1, options.lanes);
    sides.push(small);
    const large = await open(other, 1, options.lanes);
    sides.push(large);
    const { count, bytes_each } = await keep(large, options, say);
    const { ratios, more } = await compare("kept", [small, large], options, say);
    return [figure("cycle_ratio_1m_kept", "ratio", ratios, { kept: count, bytes_each, ...more })];
  } finally {
    for (const side of sides) await close(side);
    await other.close();
  }
}
