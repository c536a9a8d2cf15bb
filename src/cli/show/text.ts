/** Text in the columns of a terminal: its width, cut, padded, and wrapped between words. */

const ASCII = /^[\u0020-\u007e]*$/;
const INVISIBLE = /^[\p{Mn}\p{Me}\p{Cf}\p{Cc}]+/u;
const EMOJI =
  /^(?:\p{Emoji_Presentation}|\p{Regional_Indicator}|\p{Extended_Pictographic}\ufe0f|[0-9#*]\ufe0f?\u20e3)/u;
/** East Asian Wide and Fullwidth of Unicode's EastAsianWidth.txt, in blocks. */
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1b000}-\u{1b2ff}\u{20000}-\u{3fffd}]/u;

/**
 * How many columns text takes: Chinese, Japanese and Korean characters and emoji take two, marks none. Limit: ambiguous
 * characters count as one column.
 */
export function displayWidth(text: string): number {
  if (ASCII.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemesOf(text)) width += widthOf(segment);
  return width;
}

/** The text cut to at most `max` columns, with `…` in place of what is missing. */
export function cutTo(text: string, max: number): string {
  if (displayWidth(text) <= max) return text;
  let width = 0;
  let kept = "";
  for (const { segment } of graphemesOf(text)) {
    width += widthOf(segment);
    if (width > max - 1) break;
    kept += segment;
  }
  return max > 0 ? `${kept}…` : "";
}

/** The text with spaces up to this width. */
export const padTo = (text: string, width: number): string =>
  text + " ".repeat(Math.max(0, width - displayWidth(text)));

function widthOf(grapheme: string): number {
  const visible = grapheme.replace(INVISIBLE, "");
  if (visible === "") return 0;
  return EMOJI.test(visible) || WIDE.test(visible) ? 2 : 1;
}

let segmenter: Intl.Segmenter | undefined;

/** Splits text into what a person sees as one character. */
export function graphemesOf(text: string): Iterable<Intl.SegmentData> {
  // Making one takes a tenth of the time of a short command, and few texts need it.
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return segmenter.segment(text);
}

/** A command in quotes is one word, so that it can be copied. */
const WORD = /'[^']*'\S*|\S+/g;

/** Lines of at most `columns` columns, unless a word is longer; `indent` is before each line but the first. */
export function wrapText(text: string, columns: number, indent = ""): string {
  if (columns === Number.POSITIVE_INFINITY) return text;
  return inLines(text.match(WORD) ?? [], columns, indent).join("\n");
}

/** The words in lines of at most `columns` columns. */
export function inLines(words: readonly string[], columns: number, indent = ""): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of words) {
    if (line !== "" && displayWidth(line) + 1 + displayWidth(word) > columns) {
      lines.push(line);
      line = indent + word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** Rows of a name and a text that continues below itself. */
export function wrapRows(rows: readonly (readonly string[])[], columns: number): string {
  const width = Math.max(...rows.map(([name = ""]) => displayWidth(name))) + GAP.length;
  const indent = " ".repeat(width);
  return rows
    .map(([name = "", text = ""]) => {
      const lines = wrapText(text, columns - width);
      return (name.padEnd(width) + lines.replaceAll("\n", `\n${indent}`)).trimEnd();
    })
    .join("\n");
}
const GAP = "  ";
