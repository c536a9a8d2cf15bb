/**
 * Updates the metrics from the outcomes of the script, and from the queues. Limit: the depth of queues is read during a
 * scrape, for each agent that has work queued or running.
 */
import { MOVES, type Move } from "../../lifecycle/states.ts";
import type { Observe } from "../../lifecycle/writer.ts";
import { isTerminal } from "../../schema/delegation.ts";
import type { Metrics, QueueDepth } from "../../telemetry/metrics.ts";
import { allAgents } from "../agents/list.ts";
import type { Broker } from "../broker.ts";

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
    else if (outcome.kind === "lease") metrics.replies.inc({ outcome: "late" });
    else metrics.replies.inc({ outcome: "unknown" });
  };
}

/** Depth and age of every queue that is not empty. Small pages take longer, and delay other requests less. */
export async function queueDepths(broker: Broker, pageSize = 500): Promise<QueueDepth[]> {
  const now = Date.now() + broker.clock.offset_ms;
  const depths: QueueDepth[] = [];
  for await (const { name, counts, oldest_at } of allAgents(broker, pageSize)) {
    const { waiting, working } = counts;
    const oldest_seconds = waiting > 0 ? Math.max(0, now - (oldest_at ?? now)) / 1000 : 0;
    if (waiting + working > 0) depths.push({ agent: name, waiting, working, oldest_seconds });
  }
  return depths;
}
