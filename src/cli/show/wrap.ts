/** Wraps text between words. A command in quotes stays on one line, so that it can be copied. */
import { displayWidth } from "./display-width.ts";

const WORD = /'[^']*'\S*|\S+/g;

/** Lines of at most `columns` columns, unless a word is longer; `indent` is before each line but the first. */
export function wrapText(text: string, columns: number, indent = ""): string {
  if (columns === Number.POSITIVE_INFINITY) return text;
  const lines: string[] = [];
  let line = "";
  for (const [word] of text.matchAll(WORD)) {
    if (line.trim() !== "" && displayWidth(line) + 1 + displayWidth(word) > columns) {
      lines.push(line);
      line = indent + word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line].join("\n");
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
