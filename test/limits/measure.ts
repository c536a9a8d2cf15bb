/**
 * Measures the cost of the bounds: drives each to its limit on a gateway and a Redis of its own, and prints the memory of
 * both before, at the peak and after. `--write` also writes it to measured.json. Limit: resident size includes memory that
 * the runtime has freed but not returned.
 */
import { readdir, stat } from "node:fs/promises";
import type { Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Gateway } from "../../bench/gateway.ts";
import { closeStages, Stage } from "../../bench/stage.ts";
import { checkNames, orExit, parseArguments } from "../../scripts/arguments.mjs";
import { LIMITS } from "../../src/schema/limits.ts";
import type { Driver, Ground } from "./driver.ts";
import { DRIVERS, sender } from "./drivers.ts";
import { type Measured, update } from "./measured.ts";

type Bound = Measured["bounds"][string];

const LOOK_MS = 100;
const AFTER_MS = 2_000;
const MIB = 1024 * 1024;

interface Memory {
  readonly before: number;
  readonly peak: number;
  readonly after: number;
}

interface Costs {
  readonly gateway: Memory;
  readonly redis: Memory;
  readonly files?: Bound["files"];
}

async function measure({ drive, files }: Driver): Promise<Costs> {
  const stage = await Stage.open();
  await stage.fsync("everysec");
  const folder = join(stage.directory, "files");
  const principalBytes = files?.principalBytes ?? LIMITS.principal_file_bytes.value;
  const gateway = await Gateway.start(stage, undefined, files && { folder, principalBytes });
  const sockets = new Set<Socket>();
  try {
    const [worker] = await gateway.agents(1, "bound");
    if (!worker) throw new Error("no agent");
    const caller = await gateway.token("caller:bound");
    const ground: Ground = { gateway, caller, worker, sockets, send: sender(gateway.url, sockets) };
    await files?.prepare?.(ground);
    const look = async () => ({ rss: (await gateway.usage()).rss, used: await stage.usedMemory() });
    const before = await look();
    const peak = { ...before };
    const timer = setInterval(() => {
      void look().then(({ rss, used }) => {
        peak.rss = Math.max(peak.rss, rss);
        peak.used = Math.max(peak.used, used);
      });
    }, LOOK_MS);
    try {
      await drive(ground);
      await sleep(AFTER_MS);
    } finally {
      clearInterval(timer);
    }
    for (const socket of sockets) socket.destroy();
    await sleep(AFTER_MS);
    await gateway.usage({ gc: true });
    const after = await look();
    return {
      gateway: { before: before.rss, peak: Math.max(peak.rss, after.rss), after: after.rss },
      redis: { before: before.used, peak: Math.max(peak.used, after.used), after: after.used },
      ...(files && {
        files: {
          disk_mib: Math.round((await diskBytes(folder)) / MIB),
          ...(files.each && {
            each: {
              of: files.each.of,
              redis_bytes: Math.round((after.used - before.used) / files.each.count),
            },
          }),
        },
      }),
    };
  } finally {
    for (const socket of sockets) socket.destroy();
    await gateway.stop();
    await stage.close();
  }
}

/** The blocks of all files in the folder. */
async function diskBytes(folder: string): Promise<number> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  const sizes = await Promise.all(
    found.map(async (one) => (one.isFile() ? (await stat(join(one.parentPath, one.name))).blocks * 512 : 0)),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

const inMiB = ({ before, peak, after }: Memory): Bound["redis"] => [
  Math.round(before / MIB),
  Math.round(peak / MIB),
  Math.round(after / MIB),
];

const saysOf = (files: Bound["files"]): string =>
  files === undefined
    ? ""
    : `, disk ${files.disk_mib} MiB${files.each ? `, Redis ${files.each.redis_bytes} bytes for one ${files.each.of}` : ""}`;

const HELP = `npm run prove -- limits [--write] [NAME ...]

Drives bounds to their limit on a broker and a Redis of its own, and prints the memory of both, in MiB, before, at the
peak and after, and what files take on the disk. --write updates docs/settings.md.

  NAME     ${Object.keys(DRIVERS).join("\n           ")}

npm run prove -- limits attacks --help   a victim beside attacks
npm run prove -- limits bodies --help    the CPU time of requests
`;

async function main(): Promise<void> {
  const { values, positionals: chosen } = orExit(HELP, () => {
    const parsed = parseArguments(process.argv.slice(2), { write: { type: "boolean" } }, { names: true });
    checkNames("limit", parsed.positionals, Object.keys(DRIVERS));
    return parsed;
  });
  for (const [name, driver] of Object.entries(DRIVERS)) {
    if (chosen.length > 0 && !chosen.includes(name)) continue;
    const { gateway, redis, files } = await measure(driver);
    const memory = { gateway: inMiB(gateway), redis: inMiB(redis) };
    const bound: Bound = { what: driver.what, ...memory, ...(files && { files }) };
    process.stdout.write(
      `${name} (${driver.what}): gateway ${bound.gateway.join(" → ")}, Redis ${bound.redis.join(" → ")} MiB${saysOf(files)}\n`,
    );
    if (values.write) update(({ bounds }) => ({ bounds: { ...bounds, [name]: bound } }));
  }
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void closeStages().finally(() => process.exit(130)));
}
await main();
