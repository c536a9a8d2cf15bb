/** Updates the metrics from the outcomes of the script. */
import { MOVES, type Move } from "../../lifecycle/states.ts";
import type { Observe } from "../../lifecycle/writer.ts";
import { isTerminal } from "../../schema/delegation.ts";
import type { Metrics } from "../../telemetry/metrics.ts";

/** Counts every outcome of the writer. */
export function metricsObserver(metrics: Metrics): Observe {
  return (command, outcome) => {
    const isReply = command.params?.reply_hash !== undefined;
    if (outcome.kind === "ok") {
      metrics.moves.inc({ move: outcome.move });
      if (command.move === "due") metrics.swept.inc({ move: outcome.move });
      if (outcome.move === "reticket") metrics.ticketsRemade.inc();
      if (outcome.move === "lease") {
        metrics.timeToLease.observe(Math.max(0, outcome.now - (outcome.ready_at ?? outcome.now)) / 1000);
      }
      // A finished delegation may still get moves that keep its state, such as a new push config.
      const { to }: Move = MOVES[outcome.move];
      const ends = to.length > 0 && isTerminal(outcome.state);
      if (ends) metrics.finished.inc({ state: outcome.state });
      if (ends && outcome.state === "completed") {
        metrics.timeToAnswer.observe(Math.max(0, outcome.now - outcome.created_at) / 1000);
      }
    }
    if (!isReply) return;
    if (outcome.kind === "ok") metrics.replies.inc({ outcome: "matched" });
    else if (outcome.kind === "duplicate") metrics.replies.inc({ outcome: "duplicate" });
    else if (outcome.kind === "lease" && outcome.reclaimable) return;
    else if (outcome.kind === "lease") metrics.replies.inc({ outcome: "late" });
    else metrics.replies.inc({ outcome: "unknown" });
  };
}
