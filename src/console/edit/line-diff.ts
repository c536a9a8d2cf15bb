/** The lines in which two texts differ, with two lines around each. */
import { isCrlf } from "./line-ends.ts";

export interface DiffLine {
  /** A gap stands for lines that are the same. */
  readonly kind: "same" | "removed" | "added" | "gap";
  readonly text: string;
}

/** Of the lines between the first and the last difference. The table of common lines has the square of it. */
const MAX_LINES = 500;
const AROUND = 2;

/** Null: too many lines differ. */
export function lineDiff(before: string, after: string): readonly DiffLine[] | null {
  const lines = allLines(linesOf(before, after), linesOf(after, before));
  return lines && collapse(lines);
}

/** Line ends are shown if they are not the same everywhere. */
function linesOf(text: string, other: string): readonly string[] {
  const areCrlf = isCrlf(text) && isCrlf(other);
  return areCrlf ? text.split("\r\n") : text.split("\n").map((line) => line.replaceAll("\r", "␍"));
}

function allLines(before: readonly string[], after: readonly string[]): DiffLine[] | null {
  const least = Math.min(before.length, after.length);
  let start = 0;
  while (start < least && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < least - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const olds = before.slice(start, before.length - end);
  const news = after.slice(start, after.length - end);
  if (olds.length > MAX_LINES || news.length > MAX_LINES) return null;
  const same = (text: string): DiffLine => ({ kind: "same", text });
  return [
    ...before.slice(0, start).map(same),
    ...between(olds, news),
    ...before.slice(before.length - end).map(same),
  ];
}

/** By the longest common subsequence. */
function between(olds: readonly string[], news: readonly string[]): DiffLine[] {
  const width = news.length + 1;
  /** At `i * width + j`: how many lines the rest of the two from `i` and `j` on have in common. */
  const common = new Uint16Array((olds.length + 1) * width);
  const at = (i: number, j: number): number => common[i * width + j] ?? 0;
  for (let i = olds.length - 1; i >= 0; i -= 1) {
    for (let j = news.length - 1; j >= 0; j -= 1) {
      common[i * width + j] =
        olds[i] === news[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < olds.length || j < news.length) {
    const [old = "", text = ""] = [olds[i], news[j]];
    if (i < olds.length && j < news.length && old === text) {
      lines.push({ kind: "same", text });
      i += 1;
      j += 1;
    } else if (j >= news.length || (i < olds.length && at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ kind: "removed", text: old });
      i += 1;
    } else {
      lines.push({ kind: "added", text });
      j += 1;
    }
  }
  return lines;
}

function collapse(lines: readonly DiffLine[]): DiffLine[] {
  const changed = lines.flatMap(({ kind }, index) => (kind === "same" ? [] : [index]));
  const near = new Set(
    changed.flatMap((index) => Array.from({ length: 2 * AROUND + 1 }, (_, n) => index - AROUND + n)),
  );
  const shown: DiffLine[] = [];
  let hidden: DiffLine[] = [];
  const close = () => {
    // A gap takes a line, too.
    shown.push(...(hidden.length > 1 ? [gapOf(hidden.length)] : hidden));
    hidden = [];
  };
  for (const [index, line] of lines.entries()) {
    if (near.has(index)) close();
    (near.has(index) ? shown : hidden).push(line);
  }
  close();
  return shown;
}

const gapOf = (count: number): DiffLine => ({ kind: "gap", text: `${count} lines` });
