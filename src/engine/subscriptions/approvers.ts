/**
 * Who is notified of a question where the agent has `votes`: those whose approval counts, and who have not given it. Limit:
 * plain questions and credentials need one answer, so everybody who may answer is notified of them.
 */

import * as z from "zod";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { countsAfter, isVotedOn } from "../../schema/counted-votes.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import { personOf } from "../../schema/vote-text.ts";
import { type Votes, voteSchema } from "../../schema/votes.ts";
import { parseJson } from "../../util/parse-json.ts";
import type { Principal } from "../access/access.ts";
import type { Broker } from "../broker.ts";
import { votesOf } from "../questions/votes.ts";

/** A question on which people vote. */
export interface VotedOn {
  readonly votes: Votes;
  readonly delegator: string;
  readonly raised_at: number;
}

/** The agent's `votes` as Redis has them now; null: the first answer counts. */
export async function votesNow(broker: Pick<Broker, "agents">, agent: string): Promise<Votes | null> {
  // Most agents have none: for these the cache is enough.
  return (await votesOf(broker, agent)) && votesOf(broker, agent, true);
}

/** The open question with the agent's `votes`; null: it needs one answer, so everybody who may answer is notified. */
export async function votedOn(
  broker: Pick<Broker, "agents">,
  record: StoredDelegation,
  open: Pick<Interrupt, "id" | "kind" | "requests">,
): Promise<VotedOn | null> {
  const votes = isVotedOn(open) ? await votesNow(broker, record.get("target")) : null;
  return (
    votes && { votes, delegator: record.get("delegator"), raised_at: record.get("interrupt_raised_at") ?? 0 }
  );
}

export function countsAt(
  { votes, delegator, raised_at }: VotedOn,
  principal: Principal,
  at: number,
): boolean {
  const after = countsAfter(votes, principal.text, delegator);
  return after === 0 || (after !== null && raised_at + after <= at);
}

/** Whether one of the open question's votes is this person's. */
export function hasApproved(record: StoredDelegation, principal: Principal): boolean {
  const given = z.array(voteSchema).parse(parseJson(record.get("votes") ?? "[]"));
  return given.some(({ by }) => personOf(by) === personOf(principal.text));
}
