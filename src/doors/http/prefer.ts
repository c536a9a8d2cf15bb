/**
 * The `wait` preference of the `Prefer` header (RFC 7240). Limit: an element that does not parse is ignored, as the RFC
 * requires.
 */

/** Splits at separators outside quotes. */
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

/** The seconds of the first `wait=N`, at most `max`; 0 if there is none. */
export function preferredWait(header: string | undefined, max: number): number {
  for (const preference of split(header ?? "", ",")) {
    // Parameters after a semicolon are not preferences.
    const [first = ""] = split(preference, ";");
    const wait = /^\s*wait\s*=\s*(?:"(\d{1,6})"|(\d{1,6}))\s*$/i.exec(first);
    if (wait) return Math.min(Number(wait[1] ?? wait[2]), max);
  }
  return 0;
}
