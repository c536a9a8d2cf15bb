/** A change of a file as a unified diff. Limit: one hunk, from the first changed line to the last one. */
import type { Diff } from "./schemas.ts";

const CONTEXT = 3;

export function unifiedDiff({ path, oldText, newText }: Diff): string {
  const before = linesOf(oldText ?? "");
  const after = linesOf(newText);
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let same = 0;
  const most = Math.min(before.length, after.length) - start;
  while (same < most && before.at(-1 - same) === after.at(-1 - same)) same += 1;
  const from = Math.max(0, start - CONTEXT);
  const rest = Math.max(0, same - CONTEXT);
  const head = before.slice(from, start);
  const tail = before.slice(before.length - same, before.length - rest);
  const marked = (sign: string, lines: readonly string[]) => lines.map((line) => `${sign}${line}`);
  return [
    oldText == null ? "--- /dev/null" : `--- ${path}`,
    `+++ ${path}`,
    `@@ -${range(from, before.length - rest - from)} +${range(from, after.length - rest - from)} @@`,
    ...marked(" ", head),
    ...marked("-", before.slice(start, before.length - same)),
    ...marked("+", after.slice(start, after.length - same)),
    ...marked(" ", tail),
  ].join("\n");
}

const linesOf = (text: string): string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));
const range = (from: number, count: number): string => `${count === 0 ? from : from + 1},${count}`;
