/**
 * What Redis may lose: with `appendfsync everysec` alone, and only when it was killed, what it acknowledged while the
 * write before was not on its way to the file. Limit: goes by when an answer arrived, which is later than it was given.
 */
import type { History } from "../history.ts";
import type { Violation } from "./facts.ts";

/** Redis delays a write for at most 2 s while an fsync is under way; an fsync takes its time besides. */
export const LOSS_WINDOW_MS = 3_000;
/** An answer may take so long through a slow connection. */
const LATE_MS = 2_500;

/** Whether what was seen at that time may be void. */
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
