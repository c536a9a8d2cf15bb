/**
 * Decides which violations are losses as documented. With `appendfsync everysec`, a killed Redis may lose writes that it
 * acknowledged before it wrote the previous ones to the file. With `always`, it may lose none. Limit: uses the time at
 * which an answer arrived, which is later than when it was given.
 */
import type { History } from "../history.ts";
import type { Violation } from "./facts.ts";

/** Redis delays a write for at most 2 s while an fsync is running; the fsync itself takes time, too. */
export const LOSS_WINDOW_MS = 3_000;
/** How long an answer may take through a slow connection. */
const LATE_MS = 2_500;

/** Whether an observation at this time may be void. */
export function voidAt({
  fsync,
  faults,
}: Pick<History, "fsync" | "faults">): (at: number | undefined) => boolean {
  if (fsync === "always") return () => false;
  const spans = faults
    .filter(({ fault, phase }) => fault === "redis-kill" && phase === "begin")
    .map(({ t }) => [t - LOSS_WINDOW_MS, t + LATE_MS] as const);
  return (at) => at !== undefined && spans.some(([from, to]) => at >= from && at <= to);
}

export interface Verdict {
  readonly violations: readonly Violation[];
  /** Acknowledged, and lost as documented. */
  readonly losses: readonly Violation[];
}

export function judge(history: History, found: readonly Violation[]): Verdict {
  const isVoid = voidAt(history);
  return {
    violations: found.filter(({ at }) => !isVoid(at)),
    losses: found.filter(({ at }) => isVoid(at)),
  };
}
