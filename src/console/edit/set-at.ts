import type { Path } from "../../schema/changes.ts";
import { isObject } from "../../schema/json-schema/keywords.ts";

/**
 * The value with another one at the path; only what is on the path is copied. `next` gets what is there now; undefined
 * removes a member. Objects on the path that are missing are made.
 */
export function setAt(value: unknown, path: Path, next: (now: unknown) => unknown): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return next(value);
  if (Array.isArray(value)) {
    return value.map((item, index) => (index === name ? setAt(item, rest, next) : item));
  }
  const members = isObject(value) ? value : {};
  const member = setAt(Object.hasOwn(members, name) ? members[name] : undefined, rest, next);
  if (member === undefined) {
    return Object.fromEntries(Object.entries(members).filter(([own]) => own !== String(name)));
  }
  // A computed name is a member of its own, also if it is `__proto__`.
  return { ...members, [name]: member };
}
