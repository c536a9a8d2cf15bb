/**
 * Makes a move of a lease's holder. If the lease has lapsed and nothing was leased since, its holder first gets it back:
 * work that is finished or still runs is not lost because its calls came late.
 */
import type { Outcome } from "../../lifecycle/outcome.ts";
import { afterMove, type Moves } from "../after-move.ts";

/** The parameters by which the script checks the holder; holder.ts. */
interface Holder {
  readonly fence: number;
  readonly agent?: string;
}

/**
 * `make` makes the move; it runs once more after the lease is reclaimed. Limit: these are two steps. A crash between them
 * leaves the lease with its holder, whose repeated call goes on.
 */
export async function asHolder<T extends { readonly outcome: Outcome }>(
  broker: Moves,
  id: string,
  { fence, agent }: Holder,
  make: () => Promise<T>,
): Promise<T> {
  const made = await make();
  if (!isReclaimable(made.outcome)) return made;
  const { outcome } = await broker.writer.move({ move: "reclaim", id, params: { fence, agent } });
  if (outcome.kind === "ok") {
    broker.log.info({ delegation_id: id, fence }, "lapsed lease reclaimed");
    await afterMove(broker, id, outcome);
  }
  // Otherwise another call of the holder has reclaimed it, or another worker has the work: the answer says which.
  return make();
}

export const isReclaimable = (outcome: Outcome): boolean =>
  outcome.kind === "lease" && outcome.reclaimable === true;
