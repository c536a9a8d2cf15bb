/** Small operations on user text, each in linear time. Limit: lengths are UTF-16 code units. */

export function withoutTrailingSlashes(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === "/") end -= 1;
  return text.slice(0, end);
}

const SURROGATE_AT_END = /[\uD800-\uDBFF]$/;

/** The first `max` units, without a lone surrogate (half a character) at the end. */
export function truncate(text: string, max: number): string {
  return text.length <= max ? text : text.slice(0, max).replace(SURROGATE_AT_END, "");
}

const SHOWN_NAME = 100;

/** A member's name as paths in errors show it: a request chooses the name, and an error repeats it in up to 50 paths. */
export const shownName = (name: string): string =>
  name.length <= SHOWN_NAME ? name.toWellFormed() : `${truncate(name, SHOWN_NAME).toWellFormed()}…`;

/** Matches an escaped surrogate, and the same text after an escaped backslash. */
const ESCAPED_SURROGATE = /\\u[dD][89a-fA-F]/;

/** Whether JSON text may contain a lone surrogate. A cheap check, which is nearly always false. */
export const mayHaveLoneSurrogates = (json: string): boolean => ESCAPED_SURROGATE.test(json);

/** The JSON value with each lone surrogate replaced by U+FFFD, also in member names. Limit: the depth of the stack. */
export function wellFormed(value: unknown): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(wellFormed);
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name.toWellFormed(), wellFormed(member)]),
  );
}

/** JSON text with each lone surrogate replaced by U+FFFD. */
export const wellFormedJson = (json: string): string =>
  mayHaveLoneSurrogates(json) ? JSON.stringify(wellFormed(JSON.parse(json))) : json;

/** The paths of lone surrogates in a JSON value, at most `max`; long names are cut. */
export function loneSurrogatePaths(value: unknown, max: number): string[] {
  const found: string[] = [];
  const visit = (one: unknown, path: string): void => {
    if (found.length >= max) return;
    if (typeof one === "string") {
      if (!one.isWellFormed()) found.push(path);
    } else if (typeof one === "object" && one !== null) {
      for (const [name, member] of Object.entries(one)) {
        const inner = path === "" ? shownName(name) : `${path}.${shownName(name)}`;
        if (!name.isWellFormed() && found.length < max) found.push(inner);
        visit(member, inner);
      }
    }
  };
  visit(value, "");
  return found;
}

/** A header value: no line breaks, and nothing that a proxy may interpret differently. */
export const PRINTABLE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
