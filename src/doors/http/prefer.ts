/**
 * The `Prefer` header (RFC 7240), as far as this broker knows it: `wait`. Limit: what does not parse is passed over, as
 * the RFC asks.
 */

/** Elements between separators that stand outside of quotes. */
function split(text: string, separator: "," | ";"): string[] {
  const elements = [""];
  let quoted = false;
  for (let i = 0; i < text.length; i += 1) {
    const char = text.charAt(i);
    if (quoted && char === "\\") {
      elements.push(`${elements.pop()}${text.slice(i, i + 2)}`);
      i += 1;
      continue;
    }
    if (char === '"') quoted = !quoted;
    if (char === separator && !quoted) elements.push("");
    else elements.push(`${elements.pop()}${char}`);
  }
  return elements;
}

/** Seconds of `wait=N`, at most `max`; 0 when it is absent. The first counts when there are several. */
export function preferredWait(header: string | undefined, max: number): number {
  for (const preference of split(header ?? "", ",")) {
    // Behind a semicolon stand parameters of the preference, which are others' names.
    const [first = ""] = split(preference, ";");
    const wait = /^\s*wait\s*=\s*(?:"(\d{1,6})"|(\d{1,6}))\s*$/i.exec(first);
    if (wait) return Math.min(Number(wait[1] ?? wait[2]), max);
  }
  return 0;
}
