/** Releases a lease: its holder returns the work unfinished. */
import type * as z from "zod";
import { leaseIdOf } from "../../redis/shards.ts";
import type { releaseRequestSchema } from "../../schema/lease.ts";
import type { Principal } from "../access/access.ts";
import { afterMove, type Moves } from "../after-move.ts";
import type { Broker } from "../broker.ts";
import { refusal } from "../errors.ts";
import { asHolder } from "./as-holder.ts";
import { holderOf } from "./holder.ts";

type Release = z.output<typeof releaseRequestSchema>;

/** Queues the delegation again; no attempt is spent. Returns the delegation's id. */
export async function release(
  broker: Moves & Pick<Broker, "presence">,
  principal: Principal,
  leaseId: string,
  request: Release,
): Promise<string> {
  const { id, params } = holderOf(principal, leaseId);
  const { outcome } = await asHolder(broker, id, params, () =>
    broker.writer.move({
      move: "release",
      id,
      params: {
        ...params,
        delay_ms: Math.round(request.delay_seconds * 1000),
        unable: request.worker && true,
      },
      event: { reason: request.reason === undefined ? undefined : JSON.stringify(request.reason) },
    }),
  );
  if (outcome.kind !== "ok") throw refusal(outcome, id, leaseIdOf(id, params.fence));
  if (request.worker) broker.presence.paused(outcome.target, request.worker);
  await afterMove(broker, id, outcome);
  return id;
}
