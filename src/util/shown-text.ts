/** Text of others for a terminal or a log: without characters that control it or the direction of text. */

// biome-ignore lint/suspicious/noControlCharactersInRegex: removing them is the purpose
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|.)/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: removing them is the purpose
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g;
/** They reorder what follows, so that a line shows what it does not say. */
const DIRECTIONS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

// biome-ignore lint/suspicious/noControlCharactersInRegex: removing them is the purpose
const NOT_TEXT = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** Text of several lines for a terminal: without characters that control it or the direction of text. */
export const plainText = (text: string): string =>
  text
    .replace(/\r\n?|[\u2028\u2029]/g, "\n")
    .replace(ESCAPES, "")
    .replace(DIRECTIONS, "")
    .replace(NOT_TEXT, "");

/** One line of at most `max` characters, without characters that control a terminal or the direction of text. */
export function oneLine(text: string, max = Number.POSITIVE_INFINITY): string {
  const line = text.replace(ESCAPES, "").replace(DIRECTIONS, "").replace(CONTROLS, " ").trim();
  const characters = [...line];
  return characters.length > max ? `${characters.slice(0, max - 1).join("")}…` : line;
}
