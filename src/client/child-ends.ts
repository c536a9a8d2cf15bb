/**
 * Watches children until enough of them have ended, or the time is over. Limit: some are watched at once, the others after
 * them; what cannot be watched is left to the broker, which is asked next.
 */
import type { Delegator } from "./delegator.ts";

const AT_ONCE = 20;

interface Wanted {
  /** How many of them must end. */
  readonly needed: number;
  readonly seconds: number;
  readonly signal: AbortSignal;
}

export async function endsOf(
  delegator: Pick<Delegator, "watch">,
  children: readonly string[],
  { needed, seconds, signal }: Wanted,
): Promise<void> {
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), seconds * 1000);
  const until = AbortSignal.any([signal, over.signal]);
  const waiting = [...children];
  let left = needed;
  const watchEach = async (): Promise<void> => {
    for (let id = waiting.shift(); id !== undefined && !until.aborted; id = waiting.shift()) {
      const hasEnded = await ends(delegator, id, until);
      if (hasEnded) left -= 1;
      if (left <= 0) over.abort();
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, children.length) }, watchEach));
  } finally {
    clearTimeout(timer);
  }
}

/** Whether its stream came to its end. */
async function ends(delegator: Pick<Delegator, "watch">, id: string, signal: AbortSignal): Promise<boolean> {
  try {
    for await (const _ of delegator.watch(id, { signal }));
    return true;
  } catch {
    return false;
  }
}
