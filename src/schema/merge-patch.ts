/**
 * JSON Merge Patch (RFC 7396): `null` removes a member, objects are merged, everything else is replaced whole.
 * Limit: plain JSON values; neither input is changed.
 */
type Members = Readonly<Record<string, unknown>>;

const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isMembers(patch)) return patch;
  const merged = new Map(Object.entries(isMembers(target) ? target : {}));
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) merged.delete(name);
    else if (value !== undefined) merged.set(name, mergePatch(merged.get(name), value));
  }
  return Object.fromEntries(merged);
}
