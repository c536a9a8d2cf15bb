/**
 * Asks a question: the delegation waits for the answer, and the lease ends, unless the question is held. Limit: it fails
 * when the question expires.
 */
import { ASKED } from "../../lifecycle/states.ts";
import { leaseIdOf } from "../../redis/shards.ts";
import type { State } from "../../schema/delegation.ts";
import { givenAnswersSchema, type InterruptRequest, type InterruptResult } from "../../schema/interrupt.ts";
import { toInstant } from "../../schema/values.ts";
import type { Principal } from "../access/access.ts";
import { afterMove, type Moves } from "../after-move.ts";
import { bodyHash } from "../delegations/idempotency.ts";
import { refusal } from "../errors.ts";
import { type NamesFiles, nameFilesOf } from "../files/name-files.ts";
import { asHolder } from "../leases/as-holder.ts";
import { checkpointText } from "../leases/heartbeat.ts";
import { holderOf } from "../leases/holder.ts";
import { type Asks, askMove } from "./ask-move.ts";

/**
 * Asks a question and ends the lease; with `hold` the lease stays. If it was answered before, returns its answers, and the
 * lease stays. Asked again with `hold`, it returns the answers or `held_until`; asked again without, it parks the delegation.
 */
export async function ask(
  broker: Moves & NamesFiles & Asks,
  principal: Principal,
  leaseId: string,
  { kind, requests, expires_in_seconds, sticky_seconds, checkpoint, hold, ...single }: InterruptRequest,
): Promise<InterruptResult> {
  const { id, params } = holderOf(principal, leaseId);
  const given = requests ?? [single];
  const asking = await Promise.all(
    given.map(async (one) =>
      one.message ? { ...one, message: await nameFilesOf(broker, principal, id, one.message, params) } : one,
    ),
  );
  const question = {
    kind,
    requests: asking,
    expires_ms: expires_in_seconds === undefined ? undefined : Math.round(expires_in_seconds * 1000),
    sticky_ms: Math.round((sticky_seconds ?? 0) * 1000),
    checkpoint: checkpointText(checkpoint),
    hold,
  };
  const asked = bodyHash({ kind, requests: given });
  const move = () => asHolder(broker, id, params, () => askMove(broker, id, params, question, asked));
  let { interrupt_id, outcome } = await move();
  if (outcome.kind === "ok") await afterMove(broker, id, outcome);
  // It is held, and was approved in advance.
  if (outcome.kind === "ok" && outcome.move === "hand_over") ({ interrupt_id, outcome } = await move());
  const held = ({
    state,
    lease_expires_at: until,
  }: {
    state: State;
    lease_expires_at?: number | undefined;
  }) => until !== undefined && ASKED.includes(state) && { held_until: toInstant(until) };
  switch (outcome.kind) {
    case "ok":
      return { interrupt_id, ...held(outcome) };
    case "duplicate":
      return {
        interrupt_id: outcome.interrupt_id ?? interrupt_id,
        ...held(outcome),
      };
    case "answered":
      return {
        interrupt_id: outcome.interrupt_id,
        answers: givenAnswersSchema.parse(JSON.parse(outcome.answers)),
      };
    default:
      throw refusal(outcome, id, leaseIdOf(id, params.fence));
  }
}
