/** Redrives or cancels many delegations of one agent, newest first, page by page. */
import * as z from "zod";
import { type Delegation, delegationSchema } from "../schema/delegation.ts";
import { type BulkRefused, bulkRefusedSchema } from "../schema/interrupt.ts";
import type { ControlOptions } from "./delegator-options.ts";
import type { Http } from "./http.ts";

/** Selects delegations of one agent for a bulk call. */
export interface BulkFilter {
  /** The agent's name. */
  readonly target: string;
  /** Only those that ended with this error; for a redrive only. */
  readonly error_code?: string | undefined;
  /** Only those created before this ISO 8601 instant. */
  readonly before?: string | undefined;
}

export interface BulkOptions extends ControlOptions {
  /** Stops after this many. Default: all. */
  readonly limit?: number | undefined;
  /** Called for each delegation that the broker refused to change. */
  readonly onRefused?: ((refused: BulkRefused) => void) | undefined;
}

const bulkSchema = z.object({
  delegations: z.array(delegationSchema),
  refused: z.array(z.object(bulkRefusedSchema.shape)).default([]),
  next_before: z.string().nullable(),
});
/** How many delegations one call changes and returns; each may have up to 3 MiB. */
const PAGE = 20;

export async function* changeMany(
  http: Http,
  verb: "redrive" | "cancel",
  filter: BulkFilter,
  { limit = Number.POSITIVE_INFINITY, signal, onRefused }: BulkOptions,
): AsyncGenerator<Delegation, void> {
  let { before } = filter;
  let reported = new Set<string>();
  for (let left = limit; left > 0; ) {
    const body = { ...filter, ...(before !== undefined && { before }), limit: Math.min(PAGE, left) };
    const page = await http.requestWithRetry(bulkSchema, {
      method: "POST",
      path: `/v1/delegations/${verb}`,
      body,
      signal,
    });
    // The next page begins at the instant of the last delegation, so a refusal may be listed twice.
    for (const refused of page.refused) {
      if (!reported.has(refused.delegation_id)) onRefused?.(refused);
    }
    reported = new Set(page.refused.map(({ delegation_id }) => delegation_id));
    yield* page.delegations;
    left -= page.delegations.length;
    const isStuck = page.delegations.length === 0 && page.next_before === before;
    if (page.next_before === null || isStuck) return;
    before = page.next_before;
  }
}
