/** Characters of a value that nobody would see, or that turn the direction of what follows: a path could look like another one. */

/** Not those that texts need: line breaks, joiners of emoji and letters, and the marks of one direction. */
const HIDDEN = /\r(?!\n)|(?![\t\r\n])[\p{Cc}\u200b\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;

/** The text with these characters by their numbers: `x\u{202e}gpj`. */
export const visible = (text: string): string =>
  text.replace(HIDDEN, (found) => `\\u{${found.codePointAt(0)?.toString(16)}}`);
