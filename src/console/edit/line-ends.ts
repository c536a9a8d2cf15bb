/** Line ends of a text that a browser's field edits: a field has "\n" alone. */

/** Whether each line end is "\r\n"; also if there is none. */
export const isCrlf = (text: string): boolean => !/(?<!\r)\n|\r(?!\n)/.test(text);

/** As a field shows it. */
export const inField = (text: string): string => text.replaceAll(/\r\n?/g, "\n");

/** What was typed, with the line ends of the original; the original itself if nothing else changed. */
export function fromField(typed: string, original: string): string {
  if (typed === inField(original)) return original;
  return original.includes("\r\n") && isCrlf(original) ? typed.replaceAll("\n", "\r\n") : typed;
}
