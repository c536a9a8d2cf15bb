/** The lines that say something. */
export const linesOf = (lines: readonly string[], between = "\n"): string =>
  lines.filter((line) => line !== "").join(between);
