/** Waits for a condition; checks it every 20 ms. */
import { setTimeout as sleep } from "node:timers/promises";

export async function until(probe: () => Promise<boolean>, what: string, timeoutMs = 60_000): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await probe())) {
    if (Date.now() > deadline) throw new Error(`${what}: not within ${timeoutMs / 1000} s`);
    await sleep(20);
  }
}
