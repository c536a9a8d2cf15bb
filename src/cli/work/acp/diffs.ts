/** Changes of files as unified diffs: of one, and of all that an agent changed, as artifacts. */
import { basename, relative } from "node:path";
import { isFull } from "../../../client/errors.ts";
import type { Work } from "../../../client/work.ts";
import type { Diff } from "./schemas.ts";

const CONTEXT = 3;

/** Limit: one hunk, from the first changed line to the last one. */
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

/** The files that an agent changed, as diffs among the artifacts. Limit: only what the agent itself reports. */
const FILES_MAX = 50;
const DIFF_MAX = 64 * 1024;

/** Returns how many are left out, because they are too many or too large. */
export async function sendChanges(
  changes: readonly Diff[],
  cwd: string,
  send: Work["artifact"],
): Promise<number> {
  let sent = 0;
  for (const change of changes.slice(0, FILES_MAX)) {
    const inside = relative(cwd, change.path);
    const name = inside === "" || inside.startsWith("..") ? basename(change.path) : inside;
    const text = unifiedDiff({ ...change, path: name });
    if (Buffer.byteLength(text) > DIFF_MAX) continue;
    try {
      await send({
        artifactId: `diff/${name}`,
        name: `${name}.diff`,
        parts: [{ text, mediaType: "text/x-diff" }],
      });
    } catch (error) {
      // The answer is worth more than the diffs.
      if (isFull(error)) break;
      throw error;
    }
    sent += 1;
  }
  return changes.length - sent;
}
