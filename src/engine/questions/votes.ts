/**
 * Whose approvals an agent needs, by its setting `votes`. Denials, credentials, plain texts and the broker's own questions need
 * none. Limit: the setting that is read here may change; the script refuses an approval if it has.
 */
import * as z from "zod";
import type { Command } from "../../lifecycle/command.ts";
import { votesMark } from "../../lifecycle/numbers.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { engineTime } from "../../redis/time.ts";
import type { AnswerWay } from "../../schema/answered.ts";
import { approveSomething, ballotAnswers } from "../../schema/ballot.ts";
import { countsAfter, isOwnWork } from "../../schema/counted-votes.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import { toInstant } from "../../schema/values.ts";
import { type Votes, voteSchema } from "../../schema/votes.ts";
import { parseJson } from "../../util/parse-json.ts";
import type { Principal } from "../access/access.ts";
import type { Broker } from "../broker.ts";
import { bodyHash } from "../delegations/idempotency.ts";
import type { Inputs } from "./shown-changes.ts";

export type ReadsVotes = Pick<Broker, "agents" | "clock" | "redis">;

type Question = Pick<Interrupt, "kind" | "requests">;

/** The agent's `votes`; `fresh`: from Redis, not from the cache. */
export async function votesOf(
  { agents }: Pick<Broker, "agents">,
  target: string,
  fresh = false,
): Promise<Votes | null> {
  const agent = await (fresh ? agents.read(target) : agents.find(target));
  return agent?.spec.votes ?? null;
}

/** Whether an approval by a rule of this principal, or in advance, counts: it must count from the beginning. */
export const countsAtOnce = (votes: Votes | null, by: string, delegator: string): boolean =>
  votes === null || countsAfter(votes, by, delegator) === 0;

/** The parameters of an answer's command that concern votes. */
export interface Ballot {
  readonly params: NonNullable<Command["params"]>;
  /** Bytes that are stored for the ballot, besides the messages. */
  readonly bytes: number;
}

/** Ways of an answer that void nobody's approval of something else. */
const KEEPING: readonly AnswerWay[] = ["link", "rule", "auto"];

/** The ballot of an approval that counts under this setting. */
export function ballotOf(
  votes: Votes | null,
  via: AnswerWay,
  { requests }: Pick<Question, "requests">,
  inputs: Inputs,
): Ballot {
  const answers = JSON.stringify(ballotAnswers({ requests }, inputs));
  const seen = {
    votes_seen: votesMark(votes),
    // The page of a link does not show another answer that others approved, so its approval must not void theirs.
    // What answers without having seen it must not either.
    ...(KEEPING.includes(via) && { keeps_ballot: bodyHash(JSON.parse(answers)) }),
  };
  if (votes === null || votes.needed === 1) return { params: seen, bytes: 0 };
  return {
    params: {
      ...seen,
      needed: votes.needed,
      via,
      ballot: bodyHash(JSON.parse(answers)),
      ballot_answers: answers,
    },
    bytes: Buffer.byteLength(answers),
  };
}

interface Approving {
  readonly open: Question & Pick<Interrupt, "id">;
  readonly inputs: Inputs;
  readonly via: AnswerWay;
  /** Reads the setting from Redis: the script has refused the cached one. */
  readonly fresh: boolean;
}

/** Undefined: the answer approves nothing. Throws `forbidden` if the principal's approval does not count. */
export async function ballotFor(
  broker: ReadsVotes,
  principal: Principal,
  record: StoredDelegation,
  { open, inputs, via, fresh }: Approving,
): Promise<Ballot | undefined> {
  if (!approveSomething(open, inputs)) return undefined;
  const votes = await votesOf(broker, record.get("target"), fresh);
  const refusal = votes && (await refusalOf(broker, votes, principal, record));
  // The cached setting may be old.
  if (refusal && !fresh) return ballotFor(broker, principal, record, { open, inputs, via, fresh: true });
  if (refusal) throw refusal;
  const ballot = ballotOf(votes, via, open, inputs);
  const counted = votes && (await countedOf(broker, votes, record));
  return counted ? { ...ballot, params: { ...ballot.params, ...counted } } : ballot;
}

/**
 * Who has approved so far, without those whose approvals do not count under this setting, and how many had; null: nobody
 * has.
 */
async function countedOf(
  { redis, clock }: ReadsVotes,
  votes: Votes,
  record: StoredDelegation,
): Promise<{ readonly counted: readonly string[]; readonly counted_of: number } | null> {
  const given = z.array(voteSchema).parse(parseJson(record.get("votes") ?? "[]"));
  if (given.length === 0) return null;
  const waited = (await engineTime(redis, clock)) - (record.get("interrupt_raised_at") ?? 0);
  const counted = given.flatMap(({ by }) => {
    const after = countsAfter(votes, by, record.get("delegator"));
    return after !== null && after <= waited ? [by] : [];
  });
  return { counted, counted_of: given.length };
}

/** Why the approval does not count; null: it counts. */
async function refusalOf(
  { redis, clock }: ReadsVotes,
  votes: Votes,
  principal: Principal,
  record: StoredDelegation,
): Promise<ErrandError | null> {
  const after = countsAfter(votes, principal.text, record.get("delegator"));
  if (after === 0) return null;
  const from = (record.get("interrupt_raised_at") ?? 0) + (after ?? 0);
  if (after !== null && from <= (await engineTime(redis, clock))) return null;
  const isOwn = isOwnWork(votes, principal.text, record.get("delegator"));
  const agent = record.get("target");
  const text = isOwn
    ? `Somebody else than the delegator must approve what agent '${agent}' asks.`
    : after === null
      ? `The approval of ${principal.text} does not count for agent '${agent}'.`
      : `The approval of ${principal.text} counts for agent '${agent}' from ${toInstant(from)} on.`;
  return new ErrandError("forbidden", text, {
    delegation_id: record.id,
    delegation_valid: true,
    recovery: "Deny it, or leave it to those whose approvals count: the agent's setting `votes`.",
  });
}
