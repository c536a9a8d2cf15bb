/**
 * Fits help to the terminal: paragraphs are wrapped again, examples continue on the next line. Indented lines stay as
 * they are. Limit: a word that is longer than a line is not cut.
 */
import { inLines } from "./text.ts";

const INDENT = "      ";
const PROMPT = "  $ ";

export function fitHelp(text: string, columns: number): string {
  const fitted: string[] = [];
  let paragraph: string[] = [];
  const flush = () => {
    if (paragraph.length > 0) fitted.push(...inLines(paragraph.join(" ").split(" "), columns));
    paragraph = [];
  };
  for (const line of text.split("\n")) {
    if (line !== "" && !line.startsWith(" ")) {
      paragraph.push(line);
      // A head belongs to no paragraph.
      if (line.endsWith(":")) flush();
      continue;
    }
    flush();
    fitted.push(...(line.startsWith(PROMPT) && line.length > columns ? example(line, columns) : [line]));
  }
  flush();
  return fitted.join("\n");
}

/** Broken between the words of the shell, so that it can be pasted. */
function example(line: string, columns: number): string[] {
  const words = line.slice(PROMPT.length).match(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g) ?? [];
  const width = columns - INDENT.length - 2;
  const lines = inLines(words, width).map((line) => (line.length > width ? script(line, width) : [line]));
  const last = lines.length - 1;
  return lines.flatMap((parts, at) =>
    parts.map((part, nth) => {
      const start = at === 0 && nth === 0 ? PROMPT : INDENT;
      const isContinued = nth === parts.length - 1 && at !== last;
      return start + part + (isContinued ? " \\" : "");
    }),
  );
}

/** A quoted script for the shell, where a line may end after each of its commands. */
const script = (word: string, width: number): string[] =>
  /^'[^']*'$/.test(word) ? inLines(word.split(/(?<=;) /), width) : [word];
