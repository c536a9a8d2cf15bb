/** Reads what is around a delegation: the delegations above it, and all under it, page by page. */
import type { Delegator } from "../../../client/delegator.ts";
import { ErrandApiError } from "../../../client/errors.ts";
import type { Pages } from "../../../client/pages.ts";
import type { Delegation } from "../../../schema/delegation.ts";

/** At most this many under a delegation are read. */
export const MAX_NODES = 2_000;
const PAGE = 50;
/** Requests at the same time: a browser has six connections to an origin, of which the events take one. */
const AT_ONCE = 3;

export interface Above {
  /** From the root to the parent. */
  readonly above: readonly Delegation[];
  /** The parent of the first of them, which was erased or is hidden from the reader; null: there is none. */
  readonly missing: string | null;
}

export async function readAbove(
  delegator: Pick<Delegator, "get">,
  parentId: string | null,
  signal: AbortSignal,
): Promise<Above> {
  const above: Delegation[] = [];
  let missing = parentId;
  while (missing !== null) {
    const parent = await delegator.get(missing, { signal }).catch(nullIfGone);
    if (parent === null) break;
    above.unshift(parent);
    missing = parent.parent_id;
  }
  return { above, missing };
}

function nullIfGone(error: unknown): null {
  if (error instanceof ErrandApiError && error.status === 404) return null;
  throw error;
}

/** Passes on each page of delegations under the one with this id, at any depth. Returns whether there are more than the most. */
export async function readBelow(
  pages: Pick<Pages, "list">,
  rootId: string,
  signal: AbortSignal,
  take: (found: readonly Delegation[]) => void,
  max = MAX_NODES,
): Promise<boolean> {
  const parents = [rootId];
  let found = 0;
  const readOne = async (parent_id: string): Promise<void> => {
    let cursor: string | undefined;
    do {
      const page = await pages.list({ parent_id, limit: PAGE, cursor }, signal);
      take(page.delegations.slice(0, Math.max(0, max - found)));
      found += page.delegations.length;
      parents.push(...page.delegations.map(({ id }) => id));
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined && found <= max);
  };
  let running = 0;
  await new Promise<void>((resolve, reject) => {
    const goOn = () => {
      while (running < AT_ONCE && parents.length > 0 && found <= max) {
        running += 1;
        readOne(parents.shift() ?? "").then(() => {
          running -= 1;
          goOn();
        }, reject);
      }
      if (running === 0) resolve();
    };
    goOn();
  });
  return found > max;
}
