/** Small operations on foreign text, each in linear time. Limit: lengths are UTF-16 code units. */

export function withoutTrailingSlashes(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === "/") end -= 1;
  return text.slice(0, end);
}

const HALF_AT_END = /[\uD800-\uDBFF]$/;

/** At most `max` units from the start; it never ends in half a character. */
export function truncate(text: string, max: number): string {
  return text.length <= max ? text : text.slice(0, max).replace(HALF_AT_END, "");
}
