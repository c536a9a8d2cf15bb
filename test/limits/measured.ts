/** The file of what the bounds cost, from which docs/limits.md is generated. Each measurement writes its own part. */
import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { z } from "zod";

const FILE = new URL("./measured.json", import.meta.url);

/** MiB before, at the peak and after. */
const memorySchema = z.tuple([z.number(), z.number(), z.number()]);

const attacksSchema = z.object({
  seconds: z.number(),
  rounds: z.number(),
  /** `p99_ms` of the victim, and as a multiple of its quiet value in the same round: medians. */
  rows: z.array(z.object({ name: z.string(), p99_ms: z.number(), times_quiet: z.number(), mib: z.number() })),
});

const measuredSchema = z.object({
  machine: z.string(),
  bounds: z.record(z.string(), z.object({ what: z.string(), gateway: memorySchema, redis: memorySchema })),
  attacks: attacksSchema,
  /** All of them at once, for longer. */
  together: attacksSchema,
  bodies: z.object({
    values: z.number(),
    /** The slowest first. */
    rows: z.array(z.object({ name: z.string(), kb: z.number(), status: z.number(), ms: z.number() })),
  }),
});
export type Measured = z.output<typeof measuredSchema>;

export function record(change: (measured: Measured) => Partial<Measured>): void {
  const measured = measuredSchema.parse(JSON.parse(readFileSync(FILE, "utf8")));
  const machine = `${cpus().length} cores (${cpus()[0]?.model.trim()}), Node ${process.version}`;
  const next = { ...measured, ...change(measured), machine };
  writeFileSync(FILE, `${JSON.stringify(next, null, 2)}\n`);
}
