/**
 * How long this process could not run. On a busy machine, a test that bounds a time adds a few of these stalls to it.
 * Limit: other processes are not measured, but they wait for the same cores.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { onTestFinished } from "vitest";

/** Stalls that may delay one answer: of the test, of the broker, and of Redis, each more than once. */
const STALLS = 5;

/** Starts measuring; the result returns `ms` plus what stalls so far may have cost. */
export function allowStalls(): (ms: number) => number {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  onTestFinished(() => void delay.disable());
  return (ms) => ms + (STALLS * delay.max) / 1e6;
}
