/** What the bounds cost: the file from which docs/settings.md is generated. */
import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { z } from "zod";

const FILE = new URL("./measured.json", import.meta.url);

/** MiB before, at the peak and after. */
const memorySchema = z.tuple([z.number(), z.number(), z.number()]);

const boundSchema = z.object({
  what: z.string(),
  gateway: memorySchema,
  redis: memorySchema,
  /** What a row that stores files leaves on the disk, and in Redis for each. */
  files: z
    .object({
      disk_mib: z.number(),
      each: z.object({ of: z.string(), redis_bytes: z.number() }).optional(),
    })
    .optional(),
});

const attacksSchema = z.object({
  seconds: z.number(),
  rounds: z.number(),
  /** The median p99 of the victim, the median of its ratio to the quiet p99 of the same round, and the highest resident size. */
  rows: z.array(z.object({ name: z.string(), p99_ms: z.number(), times_quiet: z.number(), mib: z.number() })),
});

const measuredSchema = z.object({
  machine: z.string(),
  bounds: z.record(z.string(), boundSchema),
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

/** Replaces the members that `change` returns; each measurement has its own. */
export function update(change: (measured: Measured) => Partial<Measured>): void {
  const measured = measuredSchema.parse(JSON.parse(readFileSync(FILE, "utf8")));
  const machine = `${cpus().length} cores (${cpus()[0]?.model.trim()}), Node ${process.version}`;
  const next = { ...measured, ...change(measured), machine };
  writeFileSync(FILE, `${JSON.stringify(next, null, 2)}\n`);
}
