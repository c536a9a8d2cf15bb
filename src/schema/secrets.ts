/**
 * Answers without what the schema of their question marks as secret (`writeOnly`, `format: password`): a form hides it
 * while it is typed, so what shows the answer hides it, too. Members of the same name are hidden wherever they are.
 */
import type { Change, Path } from "./changes.ts";
import { isObject } from "./json-schema/keywords.ts";
import { toPointer, valueAt } from "./json-schema/pointer.ts";

export const HIDDEN = "••••••";
/** A schema with more parts is not searched: then the whole value counts as secret. */
const MAX_PARTS = 20_000;

/** The value with each secret replaced. */
export function withoutSecrets(value: unknown, schema: unknown): unknown {
  const names = secretNames(schema);
  return names === null ? HIDDEN : hide(value, names);
}

/** Whether the value at the path is secret, or has a secret in it. */
export const isSecretIn = (path: Path, value: unknown, schema: unknown): boolean =>
  hasSecret(path, value, secretNames(schema));

/** The changes with those of secrets without their values. */
export function withoutSecretChanges(changes: readonly Change[], schema: unknown): readonly Change[] {
  const names = secretNames(schema);
  return changes.map((change) =>
    hasSecret(change.path, [change.from, change.to], names) ? { path: change.path, hidden: true } : change,
  );
}

function hasSecret(path: Path, value: unknown, names: ReadonlySet<string> | null): boolean {
  if (names === null || path.some((name) => names.has(String(name)))) return true;
  return JSON.stringify(hide(value, names)) !== JSON.stringify(value);
}

function hide(value: unknown, names: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => hide(item, names));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, names.has(name) ? HIDDEN : hide(member, names)]),
  );
}

/** The names of secret members. Null: the whole value is secret. */
function secretNames(schema: unknown): ReadonlySet<string> | null {
  const names = new Set<string>();
  /** The parts of the schema that were visited, each with the name of the member that it describes. */
  const seen = new Map<unknown, Set<string | null>>();
  const open: [unknown, string | null][] = [[schema, null]];
  for (let count = 0; open.length > 0; count += 1) {
    const [part, name] = open.pop() ?? [null, null];
    if (count === MAX_PARTS) return null;
    if (Array.isArray(part)) open.push(...part.map((one: unknown): [unknown, string | null] => [one, name]));
    if (!isObject(part) || seen.get(part)?.has(name)) continue;
    seen.set(part, (seen.get(part) ?? new Set()).add(name));
    const { properties, $ref, $defs: _defs, definitions: _definitions, ...others } = part;
    if (others.format === "password" || others.writeOnly === true) {
      if (name === null) return null;
      names.add(name);
    }
    if (isObject(properties))
      for (const [member, inner] of Object.entries(properties)) open.push([inner, member]);
    for (const inner of Object.values(others)) open.push([inner, name]);
    const pointer = typeof $ref === "string" ? toPointer($ref) : undefined;
    if (pointer !== undefined) open.push([valueAt(schema, pointer), name]);
  }
  return names;
}
