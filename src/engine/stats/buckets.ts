/** Reads the buckets in which figures are counted. */
import type { Redis } from "../../redis/connect.ts";
import { Script } from "../../redis/script.ts";
import { COST_PREFIX, type Resolution } from "./layout.ts";

/** The fields of one bucket. */
export type Counted = ReadonlyMap<string, number>;
export const NOTHING: Counted = new Map();

/** KEYS: the hashes of the buckets · Returns the fields and values of each. */
const readScript = new Script(`#!lua flags=no-writes
local buckets = {}
for i, key in ipairs(KEYS) do buckets[i] = redis.call('HGETALL', key) end
return buckets`);

/** In the order of the keys; empty for a bucket in which nothing was counted. */
export async function readBuckets(bulk: Redis, keys: readonly string[]): Promise<Counted[]> {
  const reply = await readScript.run(bulk, keys, []);
  return keys.map((_, at) => toCounted(Array.isArray(reply) ? reply[at] : []));
}

function toCounted(flat: unknown): Counted {
  if (!Array.isArray(flat)) return NOTHING;
  const counted = new Map<string, number>();
  for (let i = 0; i + 1 < flat.length; i += 2) counted.set(String(flat[i]), Number(flat[i + 1]));
  return counted;
}

/** When the time of a bucket is over, ms. */
export const endOf = (slot: number, { seconds }: Resolution): number => (slot + 1) * seconds * 1000;

export function sumOf(buckets: readonly Counted[]): Counted {
  const all = new Map<string, number>();
  for (const fields of buckets) {
    for (const [field, count] of fields) all.set(field, (all.get(field) ?? 0) + count);
  }
  return all;
}

/** The costs by currency. */
export const costsIn = (fields: Counted): { readonly currency: string; readonly cost: number }[] =>
  [...fields]
    .filter(([field]) => field.startsWith(COST_PREFIX))
    .map(([field, cost]) => ({
      currency: field.slice(COST_PREFIX.length),
      cost: Number(cost.toPrecision(12)),
    }))
    .sort((a, b) => (a.currency < b.currency ? -1 : 1));

/** The sum of the fields that count by class. */
export function countIn(fields: Counted, classes: number, field: (index: number) => string): number {
  let sum = 0;
  for (let index = 0; index < classes; index += 1) sum += fields.get(field(index)) ?? 0;
  return sum;
}
