/**
 * How long commands take, by the time of `node -e 0`: the version, and a list from a broker. Each runs many times, in
 * turn. Limit: of programs that have run before, from a warm disk cache.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { type Figure, figure } from "../figures.ts";
import { Gateway } from "../gateway.ts";
import { median } from "../numbers.ts";
import type { Options } from "../options.ts";
import type { Stage } from "../stage.ts";

const MAIN = fileURLToPath(new URL("../../dist/errand.js", import.meta.url));
const COMMANDS = { node: ["-e", "0"], version: [MAIN, "--version"], list: [MAIN, "list"] } as const;
/** Of each command in a round, for each second of a window. */
const RUNS_PER_SECOND = 3;

export async function start(stage: Stage, options: Options, say: (line: string) => void): Promise<Figure[]> {
  const gateway = await Gateway.start(stage);
  const env = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    ERRAND_URL: gateway.url,
    ERRAND_TOKEN: gateway.operator,
  };
  const took = async (args: readonly string[]): Promise<number> => {
    const began = performance.now();
    const child = spawn(process.execPath, args, { env, cwd: stage.directory, stdio: "ignore" });
    const [code] = await once(child, "exit");
    if (code !== 0) throw new Error(`${args.join(" ")}: exit code ${code}`);
    return performance.now() - began;
  };
  const ratios = { version: [] as number[], list: [] as number[] };
  try {
    for (let round = 1; round <= options.rounds; round += 1) {
      const times = { node: [] as number[], version: [] as number[], list: [] as number[] };
      for (let run = 0; run < Math.max(1, options.seconds * RUNS_PER_SECOND); run += 1) {
        times.node.push(await took(COMMANDS.node));
        times.version.push(await took(COMMANDS.version));
        times.list.push(await took(COMMANDS.list));
      }
      const node = median(times.node);
      ratios.version.push(median(times.version) / node);
      ratios.list.push(median(times.list) / node);
      say(
        `start ${round}/${options.rounds}: node ${node.toFixed(0)} ms, version ${median(times.version).toFixed(0)} ms, list ${median(times.list).toFixed(0)} ms`,
      );
    }
  } finally {
    await gateway.stop();
    await stage.redis.flushall("ASYNC");
  }
  return [
    figure("start_version_ratio", "ratio", ratios.version),
    figure("start_list_ratio", "ratio", ratios.list),
  ];
}
