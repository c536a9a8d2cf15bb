/** One run: load, faults, the end, the verdict. Its files are deleted unless they are to be kept. */
import { setTimeout as sleep } from "node:timers/promises";
import { check } from "./check/check.ts";
import type { Verdict } from "./check/loss.ts";
import { endRun } from "./final.ts";
import type { History } from "./history.ts";
import { Nemesis } from "./nemesis.ts";
import type { Options } from "./options.ts";
import { Stage } from "./stage.ts";
import { type Summary, summarize } from "./summary.ts";

export interface Run {
  readonly options: Options;
  readonly history: History;
  readonly verdict: Verdict;
  /** Violations by rule. */
  readonly found: ReadonlyMap<string, number>;
  readonly summary: Summary;
  /** The path of the history, if it was kept. */
  readonly kept: string | null;
}

export interface RunHooks {
  readonly say: (line: string) => void;
  /** Called about every second during the run. */
  readonly progress?: (line: string) => void;
  /** Ends the load early; the history up to then is checked. */
  readonly stop?: AbortSignal;
}

export async function runChaos(options: Options, { say, progress, stop }: RunHooks): Promise<Run> {
  const startedAt = performance.now();
  const stage = await Stage.open(options);
  let keep = options.keep;
  try {
    say(`seed ${options.seed}: ${options.minutes} min in ${stage.directory}`);
    const nemesis = new Nemesis(stage);
    // Not AbortSignal.any: Node 20 may collect one that only waits for a timeout.
    const ending = new AbortController();
    const end = () => ending.abort();
    const timer = setTimeout(end, options.minutes * 60_000);
    stop?.addEventListener("abort", end, { once: true });
    if (stop?.aborted) end();
    const over = ending.signal;
    const loadedAt = performance.now();
    const load = nemesis.run(over);
    while (!over.aborted) {
      await sleep(1_000, undefined, { signal: over }).catch(() => undefined);
      const seconds = Math.round((performance.now() - startedAt) / 1000);
      const faults = [...nemesis.counts.values()].reduce((sum, count) => sum + count, 0);
      progress?.(`${seconds} s, ${faults} faults${nemesis.now}`);
    }
    await load;
    clearTimeout(timer);
    // A stopped run is reported with its real length.
    const minutes = stop?.aborted ? Math.round((performance.now() - loadedAt) / 6_000) / 10 : options.minutes;
    stop?.removeEventListener("abort", end);
    const history = await endRun(stage, say);
    const verdict = check(history);
    keep ||= verdict.violations.length > 0 && options.defect === null;
    const summary = summarize(history, (performance.now() - startedAt) / 1000);
    return {
      options: { ...options, minutes },
      history,
      verdict,
      found: byRule(verdict),
      summary,
      kept: keep ? stage.directory : null,
    };
  } finally {
    await stage.close(keep);
  }
}

function byRule(verdict: Verdict): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { rule } of verdict.violations) counts.set(rule, (counts.get(rule) ?? 0) + 1);
  return counts;
}
