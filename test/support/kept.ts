/**
 * The memory that delegators use: as the broker counts it, and as the sum over the records. Limit: scans, so nothing
 * may move meanwhile.
 */
import type { Redis } from "../../src/redis/connect.ts";
import { fieldsOf } from "./record.ts";

export interface Kept {
  readonly counted: Readonly<Record<string, number>>;
  readonly summed: Readonly<Record<string, number>>;
}

export async function keptIn(redis: Redis, base = "{errand:0}"): Promise<Kept> {
  const counted = Object.fromEntries(
    Object.entries(await redis.hgetall(`${base}:kept`)).map(([name, bytes]) => [name, Number(bytes)]),
  );
  const summed: Record<string, number> = {};
  for (let cursor = "0"; ; ) {
    const [next, names] = await redis.scan(
      cursor,
      "MATCH",
      `${base}:d:dlg_*`,
      "COUNT",
      1_000,
      "TYPE",
      "hash",
    );
    const records = names.filter((name) => !name.slice(`${base}:d:`.length).includes(":"));
    const rows = await Promise.all(records.map((name) => fieldsOf(redis, name)));
    for (const { delegator, kept = 0 } of rows) {
      if (delegator) summed[delegator] = (summed[delegator] ?? 0) + Number(kept);
    }
    cursor = next;
    if (cursor === "0") return { counted, summed };
  }
}
