/**
 * What an edit changed: the places where two JSON values differ. Limit: a list whose length changed counts as one change;
 * nothing says which of its items are the same.
 */
import * as z from "zod";
import { isObject } from "./json-schema/keywords.ts";
import { shownName, truncate } from "./text.ts";

/** The names and indexes from the root of a value to one of its parts. */
export type Path = readonly (string | number)[];

/** One place where an edit changed the arguments of an action. */
export const changeSchema = z.strictObject({
  /** The names and indexes from the arguments to the value. */
  path: z.array(z.union([z.string(), z.number()])),
  /** Absent: there was no such member. */
  from: z.unknown().optional(),
  /** Absent: the member was removed. */
  to: z.unknown().optional(),
  /** Both values are secret, so neither is here. */
  hidden: z.literal(true).optional(),
});
export type Change = z.infer<typeof changeSchema>;

/** None if the values are equal; the order of members does not count. */
export function changesOf(before: unknown, after: unknown): readonly Change[] {
  const found: Change[] = [];
  compare(before, after, [], found);
  return found;
}

function compare(before: unknown, after: unknown, path: Path, found: Change[]): void {
  if (before === after) return;
  if (isObject(before) && isObject(after)) {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const inner = [...path, name];
      if (!Object.hasOwn(after, name)) found.push({ path: inner, from: before[name] });
      else if (!Object.hasOwn(before, name)) found.push({ path: inner, to: after[name] });
      else compare(before[name], after[name], inner, found);
    }
  } else if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    for (const [index, item] of before.entries()) compare(item, after[index], [...path, index], found);
  } else found.push({ path: [...path], from: before, to: after });
}

/** The path as text: `hosts.0.name`. Long names are cut. */
export const pathText = (path: Path): string => path.map((name) => shownName(String(name))).join(".");

/** The most changes that are kept. */
export const MAX_CHANGES = 20;
const MAX_STEPS = 16;
/** As JSON. */
const MAX_VALUE = 200;

/** What an edit changed in the arguments of an action, bounded. */
export const boundedChangesSchema = z.strictObject({
  /** The first changes. */
  changes: z.array(changeSchema).readonly(),
  /** How many there are, also those that are left out. */
  total: z.int().min(1),
});
export type BoundedChanges = z.infer<typeof boundedChangesSchema>;

/**
 * The first changes, each short enough to be kept: at most {@link MAX_CHANGES}, and together at most `most` characters of
 * JSON. A value that is too long becomes a text: its beginning, and `…`.
 */
export function boundedChanges(
  changes: readonly Change[],
  most: number = Number.POSITIVE_INFINITY,
): BoundedChanges {
  const kept: Change[] = [];
  let size = 0;
  for (const change of changes.slice(0, MAX_CHANGES).map(boundedChange)) {
    size += JSON.stringify(change).length;
    if (size > most) break;
    kept.push(change);
  }
  return { changes: kept, total: changes.length };
}

function boundedChange({ path, hidden, ...values }: Change): Change {
  return {
    path: boundedPath(path),
    ...(hidden && { hidden }),
    ...("from" in values && { from: boundedValue(values.from) }),
    ...("to" in values && { to: boundedValue(values.to) }),
  };
}

function boundedPath(path: Path): Change["path"] {
  const steps = path.map((name) => (typeof name === "string" ? shownName(name) : name));
  return steps.length <= MAX_STEPS ? steps : [...steps.slice(0, MAX_STEPS - 1), "…"];
}

function boundedValue(value: unknown): unknown {
  const json = JSON.stringify(value);
  if (json.length <= MAX_VALUE) return value;
  const text = typeof value === "string" ? value : json;
  let cut = `${truncate(text, MAX_VALUE)}…`;
  // Escapes make the JSON of a text longer than the text.
  for (let keep = MAX_VALUE; JSON.stringify(cut).length > MAX_VALUE; keep -= 1)
    cut = `${truncate(text, keep)}…`;
  return cut;
}
