/**
 * The gateway under test, from the build, in a process of its own. Limit: one; it also reports its CPU and memory and
 * takes profiles, and is otherwise the same as `errand serve`.
 */
import { writeFile } from "node:fs/promises";
import { Session } from "node:inspector/promises";
import { resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { pathToFileURL } from "node:url";
import { z } from "zod";
import type { FileStore } from "../../src/engine/files/store.ts";
import type { Gateway } from "../../src/gateway/gateway.ts";
import { LIMITS } from "../../src/schema/limits.ts";
import type { Usage } from "../gateway.ts";
import { serve } from "../remote.ts";

// The build, because that is what users run. The test of the benchmarks names a bundle of it, which starts faster.
const build = pathToFileURL(resolve("build"));
const bundle = process.env.ERRAND_BENCH_GATEWAY;
const app: typeof import("../../src/gateway/gateway.ts") = await import(
  bundle ?? `${build}/gateway/gateway.js`
);
const logging: typeof import("../../src/telemetry/log.ts") = await import(
  bundle ?? `${build}/telemetry/log.js`
);

const settingsSchema = z.object({
  socket: z.string(),
  password: z.string(),
  db: z.number(),
  operatorToken: z.string(),
  port: z.number(),
  /** The folder of the files, and the most bytes of one principal. */
  files: z.object({ folder: z.string(), principalBytes: z.number() }).optional(),
});

/** As `errand serve` stores them. */
async function storedIn(folder: string): Promise<FileStore> {
  const disk: typeof import("../../src/engine/files/disk-store.ts") = await import(
    `${build}/engine/files/disk-store.js`
  );
  return new disk.DiskStore(folder);
}

let gateway: Gateway | undefined;
const session = new Session();

serve({
  async start(args) {
    const { operatorToken, port, files, ...redis } = settingsSchema.parse(args);
    gateway = await app.startGateway({
      redis,
      host: "127.0.0.1",
      port,
      operatorToken,
      shards: 1,
      retentionMs: 604_800_000,
      maxBodyBytes: 1_048_576,
      allowedOrigins: [],
      ...(files && {
        files: {
          store: await storedIn(files.folder),
          maxBytes: LIMITS.file_bytes.value,
          principalBytes: files.principalBytes,
        },
      }),
      log: logging.createLog("warn", (line) => process.stderr.write(line)),
    });
    return gateway.port;
  },
  async usage(args): Promise<Usage> {
    if (z.object({ gc: z.boolean() }).parse(args).gc) for (let i = 0; i < 3; i += 1) globalThis.gc?.();
    const { user, system } = process.cpuUsage();
    const { rss, heapUsed, external } = process.memoryUsage();
    const parked = gateway?.broker.handoff.polls.countAll() ?? 0;
    const streams = (await gateway?.broker.metrics.streams.get())?.values[0]?.value ?? 0;
    const remade = (await gateway?.broker.metrics.ticketsRemade.get())?.values[0]?.value ?? 0;
    return { cpu_us: user + system, rss, heap: heapUsed + external, parked, streams, remade };
  },
  async busyMs() {
    return performance.eventLoopUtilization().active;
  },
  async profile() {
    session.connect();
    await session.post("Profiler.enable");
    await session.post("Profiler.setSamplingInterval", { interval: 250 });
    await session.post("Profiler.start");
  },
  async profiled(args) {
    const { profile } = await session.post("Profiler.stop");
    await writeFile(z.string().parse(args), JSON.stringify(profile));
    session.disconnect();
  },
  stop: () => gateway?.close(),
});
