/** Whether a text is written in Markdown. */
import type { Part } from "../../schema/a2a.ts";

/** Headings, lists, quotes, tables and fences at the start of a line; emphasis, code and links anywhere. */
const MARKS = /^ {0,3}(?:#{1,6} |[-*+] |\d{1,9}[.)] |>|\||```|~~~)|\*\*\S|`[^`]|\]\(/m;

export const hasMarks = (text: string): boolean => MARKS.test(text);

/** A text that says it is plain is taken at its word: the signs in it may be its own. */
export function isMarkdown({ text, mediaType = "" }: Pick<Part, "text" | "mediaType">): boolean {
  if (text === undefined) return false;
  return mediaType === "" ? hasMarks(text) : /^text\/(?:x-)?markdown\b/.test(mediaType);
}
