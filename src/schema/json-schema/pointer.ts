/** JSON Pointers (RFC 6901) as `$ref` has them: `#`, `#/$defs/name`. */

/** One step of a pointer, escaped. */
export const escaped = (name: string): string => name.replaceAll("~", "~0").replaceAll("/", "~1");

/** The pointer of a reference within the same schema, in its plain form (`/$defs/name`); undefined for any other. */
export function toPointer(reference: string): string | undefined {
  if (reference !== "#" && !reference.startsWith("#/")) return undefined;
  try {
    return decodeURIComponent(reference.slice(1));
  } catch {
    return undefined;
  }
}

/** The value at a pointer; undefined if there is none. */
export function valueAt(root: unknown, pointer: string): unknown {
  let value = root;
  for (const step of pointer.split("/").slice(1)) {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = Reflect.get(value, name);
  }
  return value;
}
