/**
 * Replies of agents that speak only A2A. A reply names its lease, and is fenced like any other, or only its delegation.
 * Limit: a reply without a lease id matches only while the delegation's first lease is live, because a later lease
 * could belong to another worker.
 */

import { failure } from "../../lifecycle/numbers.ts";
import type { Outcome } from "../../lifecycle/outcome.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { leaseIdOf, parseLeaseId } from "../../redis/shards.ts";
import { type Artifact, type Message, textOf, withoutLease } from "../../schema/a2a.ts";
import { isTerminal } from "../../schema/delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { ReplyRequest } from "../../schema/lease.ts";
import { type Principal, requireAgent } from "../access/access.ts";
import { afterMove, type Moves } from "../after-move.ts";
import type { Broker } from "../broker.ts";
import { bodyHash } from "../delegations/idempotency.ts";
import { preview } from "../delegations/preview.ts";
import { refusal } from "../errors.ts";
import { type NamesFiles, nameFilesIn } from "../files/name-files.ts";
import { type Asks, askMove } from "../questions/ask-move.ts";
import type { Question } from "../questions/asked.ts";
import { asHolder } from "./as-holder.ts";
import { type ReplyResult, replyMove } from "./reply.ts";

export type Address =
  | { readonly by: "lease"; readonly lease_id: string }
  | { readonly by: "delegation"; readonly delegation_id: string };

export type Action =
  | {
      readonly kind: "reply";
      readonly state: ReplyRequest["state"];
      readonly message?: ReplyRequest["message"];
      readonly artifacts?: ReplyRequest["artifacts"];
      readonly error?: ReplyRequest["error"];
      /** The answer is a bare A2A Message, not a Task. */
      readonly bare?: boolean;
    }
  | {
      readonly kind: "progress";
      readonly message?: Message;
      readonly artifacts?: readonly Artifact[];
      /** The artifacts are chunks that are appended to earlier ones. */
      readonly append?: boolean;
      readonly last_chunk?: boolean;
    }
  | {
      readonly kind: "interrupt";
      readonly interrupt: "input" | "auth";
      readonly message?: Message;
      readonly artifacts?: readonly Artifact[];
    }
  | { readonly kind: "canceled"; readonly message?: Message };

type Holder = {
  readonly fence: number;
  readonly agent: string;
  /** See `a2a_form` in lifecycle/fields.ts. */
  readonly a2a_form: "message" | "task";
};

export async function replyA2a(
  broker: Moves & NamesFiles & Asks,
  principal: Principal,
  agent: string,
  address: Address | null,
  action: Action,
  body: unknown,
): Promise<ReplyResult> {
  requireAgent(principal, agent, "reply for it");
  await broker.agents.get(agent);
  if (address === null) throw replyUnknown("It names neither a lease nor a delegation.");
  const { id, fence } = locate(address);
  const isBare = action.kind === "reply" && action.bare === true;
  const holder: Holder = { fence, agent, a2a_form: isBare ? "message" : "task" };
  const hash = bodyHash(body);
  const named = await nameFilesIn(broker, principal, id, action, { fence });
  const { outcome, record } = await asHolder(broker, id, holder, () =>
    makeMove(broker, id, holder, named, hash),
  );
  if (outcome.kind === "ok" && record) {
    await afterMove(broker, id, outcome);
    return { outcome: "matched", record };
  }
  if (outcome.kind === "duplicate" && record) return { outcome: "duplicate", record };
  throw toError(outcome, id, fence, agent, address);
}

function locate(address: Address): { id: string; fence: number } {
  if (address.by === "delegation") return { id: address.delegation_id, fence: 1 };
  const { delegationId, fence } = parseLeaseId(address.lease_id);
  return { id: delegationId, fence };
}

async function makeMove(
  broker: Asks,
  id: string,
  holder: Holder,
  action: Action,
  reply_hash: string,
): Promise<Result> {
  const params = { ...holder, reply_hash };
  switch (action.kind) {
    case "reply":
      return replyMove(broker, id, params, action);
    case "interrupt": {
      const { interrupt: kind, message, artifacts } = action;
      return ask(broker, id, holder, { kind, requests: [{ message }], artifacts }, reply_hash);
    }
    case "canceled": {
      const by = `agent:${holder.agent}`;
      const reason = textOf(action.message ?? {});
      const error = failure(
        "canceled",
        reason === "" ? `Canceled by ${by}` : `Canceled by ${by}: ${preview(reason, 1024)}`,
      );
      const json = JSON.stringify(error);
      return broker.writer.move({
        move: "cancel",
        id,
        params: { ...params, cascade: by },
        event: { error: json, by: JSON.stringify(by) },
        fields: { error: json },
        read: true,
      });
    }
    case "progress":
      return progressMove(broker, id, holder, action);
  }
}

/**
 * An agent that repeats an answered question has given up its task: the delegation is released, and the next worker
 * gets the answer as its message.
 */
async function ask(
  broker: Asks,
  id: string,
  holder: Holder,
  question: Question,
  reply_hash: string,
): Promise<Result> {
  const raised = await askMove(broker, id, holder, question, reply_hash);
  if (raised.outcome.kind !== "answered") return raised;
  return broker.writer.move({ move: "release", id, params: { ...holder, reply_hash }, read: true });
}

type Result = { outcome: Outcome; record: StoredDelegation | null };

/** A task in progress: its message becomes progress, and its artifacts are added; one move for both. */
async function progressMove(
  broker: Pick<Broker, "writer">,
  id: string,
  params: Holder,
  action: Extract<Action, { kind: "progress" }>,
): Promise<Result> {
  const { append = false, last_chunk = false } = action;
  const artifacts = (action.artifacts ?? []).map(withoutLease);
  const text = textOf(action.message ?? {});
  const progress = text === "" ? undefined : JSON.stringify({ message: preview(text, 4096) });
  const [first, second] = artifacts;
  const pieces = {
    append: String(append),
    last_chunk: String(last_chunk),
  };
  return broker.writer.move({
    move: progress !== undefined ? "progress" : first ? "artifact" : "heartbeat",
    id,
    params,
    event: { progress, ...(first && pieces) },
    fields: { progress },
    artifacts: artifacts.map((artifact) => ({ artifact, append })),
    shows: second ? "artifacts" : "artifact",
    read: true,
  });
}

const replyUnknown = (why: string): ErrandError =>
  new ErrandError("reply_unknown", `The reply matches no delegation of this agent. ${why}`);

function toError(outcome: Outcome, id: string, fence: number, agent: string, address: Address): ErrandError {
  if (outcome.kind === "missing" || outcome.target !== agent) return replyUnknown("Its id is unknown.");
  if (outcome.kind === "no_lease" && address.by === "delegation") {
    return new ErrandError("lease_lost", `Delegation ${id} was never leased.`, {
      delegation_id: id,
      ...(outcome.state && { delegation_valid: !isTerminal(outcome.state) }),
      details: { reason: "not_leased" },
      recovery: "Lease it first, and send the lease_id with the reply.",
    });
  }
  if (outcome.kind === "no_lease") return replyUnknown("There is no such lease.");
  return refusal(outcome, id, leaseIdOf(id, fence));
}
