/**
 * Where the time goes: the gateway's from a CPU profile, Redis' from its own counters. Limit: time in Node and native
 * code counts for the library, or the part of the gateway, that called it; without a caller it counts for itself.
 */
import { readFile } from "node:fs/promises";
import { z } from "zod";
import type { Window } from "./load.ts";

const profileSchema = z.object({
  nodes: z.array(
    z.object({
      id: z.number(),
      callFrame: z.object({ functionName: z.string(), url: z.string(), lineNumber: z.number() }),
      children: z.array(z.number()).optional(),
    }),
  ),
  samples: z.array(z.number()),
  timeDeltas: z.array(z.number()),
});
type Profile = z.infer<typeof profileSchema>;
type Frame = Profile["nodes"][number]["callFrame"];

const PARTS = 24;
const FUNCTIONS = 40;

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

/** A library, or a file of the gateway; undefined for Node itself and native code. */
function partOf({ url }: Frame): string | undefined {
  return (
    /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ??
    /\/build\/([\w-]+\/[\w-]+|[\w-]+)\.js$/.exec(url)?.[1]
  );
}

/** The gateway's own function, as named in the build. */
function ownFunction(frame: Frame): string | undefined {
  const file = /\/build\/([\w/-]+\.js)$/.exec(frame.url)?.[1];
  if (file === undefined || frame.url.includes("node_modules")) return undefined;
  return `${frame.functionName || "(anonymous)"} ${file}:${frame.lineNumber + 1}`;
}

class Tree {
  readonly #frames = new Map<number, Frame>();
  readonly #parents = new Map<number, number>();

  constructor(nodes: Profile["nodes"]) {
    for (const { id, callFrame, children = [] } of nodes) {
      this.#frames.set(id, callFrame);
      for (const child of children) this.#parents.set(child, id);
    }
  }

  /** The name of the nearest caller that `of` knows, from this node upwards. */
  nearest(id: number, of: (frame: Frame) => string | undefined): string {
    for (let at: number | undefined = id; at !== undefined; at = this.#parents.get(at)) {
      const frame = this.#frames.get(at);
      const found = frame && of(frame);
      if (found !== undefined) return found;
    }
    const name = this.#frames.get(id)?.functionName ?? "";
    return name.startsWith("(") ? name : "node";
  }
}

/** Readable tables: shares of the gateway's busy time, and microseconds per delegation. */
export async function describeProfile(file: string, windows: readonly Window[]): Promise<string> {
  const { nodes, samples, timeDeltas } = profileSchema.parse(JSON.parse(await readFile(file, "utf8")));
  const tree = new Tree(nodes);
  const self = new Map<number, number>();
  for (const [index, node] of samples.entries()) {
    self.set(node, (self.get(node) ?? 0) + (timeDeltas[index] ?? 0));
  }
  const parts = new Map<string, number>();
  const functions = new Map<string, number>();
  let busy = 0;
  for (const [node, time] of self) {
    const part = tree.nearest(node, partOf);
    if (part === "(idle)") continue;
    busy += time;
    parts.set(part, (parts.get(part) ?? 0) + time);
    const own = tree.nearest(node, ownFunction);
    functions.set(own, (functions.get(own) ?? 0) + time);
  }
  const delegations = windows.reduce((sum, { asked }) => sum + asked.count, 0);
  // The profile includes the warm-up; the windows have the cost of one delegation.
  const each = windows.reduce((sum, window) => sum + window.gateway_cpu_us, 0) / delegations;
  const table = (of: Map<string, number>, most: number) =>
    [...of]
      .sort(([, a], [, b]) => b - a)
      .slice(0, most)
      .map(([name, time]) => {
        const share = time / busy;
        return `${(100 * share).toFixed(1).padStart(6)} %  ${(each * share).toFixed(0).padStart(5)} us  ${name}`;
      });
  return [
    `gateway: ${each.toFixed(0)} us of CPU a delegation; by library, or own file`,
    ...table(parts, PARTS),
    "",
    "by the own function that was nearest",
    ...table(functions, FUNCTIONS),
  ].join("\n");
}
