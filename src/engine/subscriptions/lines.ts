/** Joins the lines that are not empty. */
export const linesOf = (lines: readonly string[], between = "\n"): string =>
  lines.filter((line) => line !== "").join(between);
