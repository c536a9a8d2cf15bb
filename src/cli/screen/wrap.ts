/** Breaks text by others into lines of a screen, without characters that control it. */
import { oneLine } from "../show/output.ts";
import { displayWidth, graphemesOf } from "../show/text.ts";

/** Each line of the text, broken between words where possible. Continued lines are indented like their line. */
export function wrapped(text: string, width: number): string[] {
  return text.split(/\r?\n/).flatMap((line) => {
    const indent = (/^[ \t]*/.exec(line)?.[0] ?? "").replaceAll("\t", "  ").slice(0, Math.floor(width / 3));
    return broken(oneLine(line), Math.max(1, width - indent.length)).map((part) => indent + part);
  });
}

function broken(line: string, width: number): string[] {
  const lines: string[] = [];
  let current = "";
  let used = 0;
  const end = () => {
    lines.push(current.trimEnd());
    current = "";
    used = 0;
  };
  for (const word of line.split(/(?<= )(?=[^ ])/)) {
    const wide = displayWidth(word.trimEnd());
    if (used > 0 && used + wide > width) end();
    if (wide <= width) {
      current += word;
      used += displayWidth(word);
      continue;
    }
    for (const { segment } of graphemesOf(word)) {
      const one = displayWidth(segment);
      if (used + one > width) end();
      current += segment;
      used += one;
    }
  }
  if (current.trim() !== "" || lines.length === 0) end();
  return lines;
}
