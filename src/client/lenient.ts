/**
 * Parses answers and ignores unknown fields at any depth, so that a client works with newer brokers. Limit: it removes
 * the keys that strict schemas report; a key that is unknown to only one branch of a union stays.
 */
import type * as z from "zod";
import { type Read, readAs } from "../schema/issues.ts";

/** Each round may reveal unknown keys deeper in the value. The limit prevents an endless loop. */
const ROUNDS = 8;

/** The value itself stays as it is. */
export function parseLenient<T>(schema: z.ZodType<T>, value: unknown): Read<T> {
  let known = value;
  let result = readAs(schema, value);
  for (let round = 0; round < ROUNDS && !result.success; round += 1) {
    if (known === value) known = structuredClone(value);
    let removed = 0;
    for (const issue of result.error.issues) {
      if (issue.code === "unrecognized_keys") removed += remove(known, issue.path, issue.keys);
    }
    if (removed === 0) break;
    result = readAs(schema, known);
  }
  return result;
}

function remove(root: unknown, path: readonly PropertyKey[], keys: readonly string[]): number {
  let at = root;
  for (const step of path) {
    if (typeof at !== "object" || at === null) return 0;
    at = Reflect.get(at, step);
  }
  if (typeof at !== "object" || at === null) return 0;
  for (const key of keys) Reflect.deleteProperty(at, key);
  return keys.length;
}
