/**
 * How many columns text takes on a terminal: Chinese, Japanese and Korean characters and emoji take two, marks none.
 * Limit: ambiguous characters count as one column.
 */
import { graphemesOf } from "./graphemes.ts";

const ASCII = /^[\u0020-\u007e]*$/;
const INVISIBLE = /^[\p{Mn}\p{Me}\p{Cf}\p{Cc}]+/u;
const EMOJI =
  /^(?:\p{Emoji_Presentation}|\p{Regional_Indicator}|\p{Extended_Pictographic}\ufe0f|[0-9#*]\ufe0f?\u20e3)/u;
/** East Asian Wide and Fullwidth of Unicode's EastAsianWidth.txt, in blocks. */
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1b000}-\u{1b2ff}\u{20000}-\u{3fffd}]/u;

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
