/** The files that an agent changed, as diffs among the artifacts. Limit: only what the agent itself reports. */
import { basename, relative } from "node:path";
import { isFull } from "../../../client/errors.ts";
import type { Work } from "../../../client/work.ts";
import type { Diff } from "./schemas.ts";
import { unifiedDiff } from "./unified-diff.ts";

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
