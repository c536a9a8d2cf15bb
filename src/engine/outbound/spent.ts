/**
 * Reports what the tree of a delegation has used to its parent, which counts it for the budgets there and above. It is a
 * pending delivery of the child until the parent has counted it; lua/lazy/budget.lua has the steps. Safe to repeat.
 */
import { afterMove, type Moves } from "../after-move.ts";

/** `spent`: the sum, as the script writes it. */
export async function reportSpent(broker: Moves, id: string, parent: string, spent: string): Promise<void> {
  const { outcome } = await broker.writer.move({
    move: "spend",
    id: parent,
    params: { child_id: id, spent },
  });
  await broker.writer.move({ move: "follow_up", id, params: { spent } });
  // Its own report upwards is a pending delivery of the parent.
  if (outcome.kind === "ok") await afterMove(broker, parent, outcome);
}
