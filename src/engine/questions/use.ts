/**
 * Takes the answer to one request for one use. What an answer allows, such as the call of a tool, must not happen twice: so
 * its holder takes it before it acts, and a worker that comes after a crash is told that it was taken.
 */

import { leaseIdOf } from "../../redis/shards.ts";
import { ErrandError } from "../../schema/errors.ts";
import { givenAnswersSchema, type UseRequest, type UseResult } from "../../schema/interrupt.ts";
import type { Principal } from "../access/access.ts";
import type { Moves } from "../after-move.ts";

import { refusal } from "../errors.ts";
import { asHolder } from "../leases/as-holder.ts";
import { holderOf } from "../leases/holder.ts";

/** The call may be repeated with the same `use_key`. Throws `answer_unknown` if the request has no answer. */
export async function use(
  broker: Moves,
  principal: Principal,
  leaseId: string,
  request: UseRequest,
): Promise<UseResult> {
  const { id, params } = holderOf(principal, leaseId);
  const { outcome } = await asHolder(broker, id, params, () =>
    broker.writer.move({ move: "use", id, params: { ...params, ...request } }),
  );
  if (outcome.kind === "used") return { used: "before" };
  if (outcome.kind === "no_question")
    throw new ErrandError(
      "answer_unknown",
      `No answer to request '${request.request_id}' of this question.`,
      {
        delegation_id: id,
      },
    );
  if (outcome.kind !== "ok") throw refusal(outcome, id, leaseIdOf(id, params.fence));
  const answers = givenAnswersSchema.parse(JSON.parse(outcome.answers ?? "{}"));
  return { used: "now", answer: answers[request.request_id] };
}
