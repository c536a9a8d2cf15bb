/** The beginning of a long text: so many lines, and of each so many characters. */

export interface Beginning {
  readonly text: string;
  /** Of the whole text. */
  readonly lines: number;
  readonly isWhole: boolean;
}

interface Bounds {
  readonly lines: number;
  /** Of each line. */
  readonly width: number;
}

export function beginningOf(text: string, bounds: Bounds): Beginning {
  const whole = text.endsWith("\n") ? text.slice(0, -1) : text;
  const lines: string[] = [];
  let isWhole = true;
  let count = 0;
  for (let at = 0; at <= whole.length; count += 1) {
    const found = whole.indexOf("\n", at);
    const end = found === -1 ? whole.length : found;
    if (count < bounds.lines) {
      const isCut = end - at > bounds.width;
      lines.push(whole.slice(at, isCut ? at + bounds.width : end) + (isCut ? "…" : ""));
      isWhole &&= !isCut;
    }
    at = end + 1;
  }
  return { text: lines.join("\n"), lines: count, isWhole: isWhole && count <= bounds.lines };
}
