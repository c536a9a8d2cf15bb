/**
 * Reads a CPU profile of the gateway: where its time goes, by part and by function. Limit: self time; what a function
 * calls is counted where it runs.
 */
import { readFile } from "node:fs/promises";
import { z } from "zod";
import type { Window } from "./load.ts";

const profileSchema = z.object({
  nodes: z.array(
    z.object({
      id: z.number(),
      callFrame: z.object({ functionName: z.string(), url: z.string(), lineNumber: z.number() }),
    }),
  ),
  samples: z.array(z.number()),
  timeDeltas: z.array(z.number()),
});

const FUNCTIONS = 40;

/** The part of the gateway that a file belongs to. */
function partOf(url: string, functionName: string): string {
  const library = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1];
  if (library !== undefined) return library;
  const own = /\/dist\/(\w+)\//.exec(url)?.[1];
  if (own !== undefined) return `errand ${own}/`;
  if (url.startsWith("node:")) return url.replace(/^node:(internal\/)?/, "node ").split("/")[0] ?? "node";
  return functionName.startsWith("(") ? functionName : "native";
}

/** What one delegation costs Redis, by command. */
export function commandTable(windows: readonly Window[]): string {
  const total = new Map<string, { calls: number; us: number }>();
  let delegations = 0;
  for (const { asked, redis } of windows) {
    delegations += asked.count;
    for (const [name, { calls, us }] of redis.by) {
      const known = total.get(name) ?? { calls: 0, us: 0 };
      total.set(name, { calls: known.calls + calls, us: known.us + us });
    }
  }
  const lines = [...total]
    .sort(([, a], [, b]) => b.us - a.us)
    .map(([name, { calls, us }]) => {
      const each = [calls / delegations, us / delegations].map((number) => number.toFixed(2).padStart(8));
      return `${each.join("  ")}  ${name}`;
    });
  return ["   calls        us  a delegation, by command (a script's own are counted again)", ...lines].join(
    "\n",
  );
}

/** A readable table; idle time is left out of the shares. */
export async function describeProfile(file: string): Promise<string> {
  const { nodes, samples, timeDeltas } = profileSchema.parse(JSON.parse(await readFile(file, "utf8")));
  const self = new Map<number, number>();
  for (const [index, node] of samples.entries()) {
    self.set(node, (self.get(node) ?? 0) + (timeDeltas[index] ?? 0));
  }
  const parts = new Map<string, number>();
  const functions = new Map<string, number>();
  let busy = 0;
  for (const { id, callFrame } of nodes) {
    const { functionName, url, lineNumber } = callFrame;
    const time = self.get(id) ?? 0;
    if (time === 0 || functionName === "(idle)") continue;
    busy += time;
    const part = partOf(url, functionName);
    parts.set(part, (parts.get(part) ?? 0) + time);
    const where = `${functionName || "(anonymous)"} ${url.split("/").slice(-2).join("/")}:${lineNumber + 1} [${part}]`;
    functions.set(where, (functions.get(where) ?? 0) + time);
  }
  const table = (of: Map<string, number>, most: number) =>
    [...of]
      .sort(([, a], [, b]) => b - a)
      .slice(0, most)
      .map(([name, time]) => `${((100 * time) / busy).toFixed(1).padStart(6)} %  ${name}`);
  return [
    "self time by part",
    ...table(parts, 30),
    "",
    "self time by function",
    ...table(functions, FUNCTIONS),
  ].join("\n");
}
