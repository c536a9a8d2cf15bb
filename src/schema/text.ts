/** Small operations on user text, each in linear time. Limit: lengths are UTF-16 code units. */

export function withoutTrailingSlashes(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === "/") end -= 1;
  return text.slice(0, end);
}

const HALF_AT_END = /[\uD800-\uDBFF]$/;

/** The first `max` units, without half a character at the end. */
export function truncate(text: string, max: number): string {
  return text.length <= max ? text : text.slice(0, max).replace(HALF_AT_END, "");
}

/** A lone surrogate as JSON escapes it, or the same text after an escaped backslash: a cheap check, nearly always false. */
const HALF_ESCAPE = /\\u[dD][89a-fA-F]/;

/** Whether JSON text may contain a lone surrogate: half a character, left by a cut between two code units. */
export const mayHoldHalves = (json: string): boolean => HALF_ESCAPE.test(json);

/** The JSON value with each half character replaced by U+FFFD, also in member names. Limit: the depth of the stack. */
export function wellFormed(value: unknown): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(wellFormed);
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name.toWellFormed(), wellFormed(member)]),
  );
}

/** JSON text without half characters. */
export const wellFormedJson = (json: string): string =>
  mayHoldHalves(json) ? JSON.stringify(wellFormed(JSON.parse(json))) : json;

/** The paths of half characters in a JSON value, at most `max`. */
export function halvesIn(value: unknown, max: number): string[] {
  const found: string[] = [];
  const look = (one: unknown, path: string): void => {
    if (found.length >= max) return;
    if (typeof one === "string") {
      if (!one.isWellFormed()) found.push(path);
    } else if (typeof one === "object" && one !== null) {
      for (const [name, member] of Object.entries(one)) {
        const inner = path === "" ? name.toWellFormed() : `${path}.${name.toWellFormed()}`;
        if (!name.isWellFormed() && found.length < max) found.push(inner);
        look(member, inner);
      }
    }
  };
  look(value, "");
  return found;
}
