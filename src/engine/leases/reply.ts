/**
 * Accepts the reply of a lease's holder, which ends the delegation or returns it for a retry. The script decides whether
 * the reply is matched, a duplicate or late.
 */
import { randomUUID } from "node:crypto";
import { failure } from "../../lifecycle/numbers.ts";
import type { Result } from "../../lifecycle/outcome.ts";
import type { MoveName } from "../../lifecycle/states.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { textOf, withoutLease } from "../../schema/a2a.ts";
import type { DelegationError } from "../../schema/delegation.ts";
import type { ReplyRequest } from "../../schema/lease.ts";
import type { Principal } from "../access/access.ts";
import { afterMove, type Moves } from "../after-move.ts";
import type { Broker } from "../broker.ts";
import { bodyHash } from "../delegations/idempotency.ts";
import { preview } from "../delegations/preview.ts";
import { refusal } from "../errors.ts";
import { type NamesFiles, nameFilesIn } from "../files/name-files.ts";
import { asHolder, isReclaimable } from "./as-holder.ts";
import { holderOf } from "./holder.ts";
import { withCheckedResult } from "./result.ts";

export interface ReplyResult {
  readonly outcome: "matched" | "duplicate";
  readonly record: StoredDelegation;
}

function toReply(request: Omit<ReplyRequest, "next" | "worker">): string | undefined {
  if (request.text === undefined && request.message === undefined) return undefined;
  const sent = withoutLease(request.message ?? { parts: [{ text: request.text ?? "" }] });
  const { messageId = randomUUID(), role = "ROLE_AGENT", parts } = sent;
  // Object.assign, because a literal that begins with a spread is slow; see lifecycle/command.ts.
  return JSON.stringify(Object.assign({}, sent, { messageId, role, parts: parts ?? [] }));
}

/**
 * The agent's error, or a default; the broker adds the recovery, and a category if the agent gave none. The agent's code
 * may be one of the broker's with another meaning, so the recovery never depends on it.
 */
function toError(request: Omit<ReplyRequest, "next" | "worker">, text: string): DelegationError | undefined {
  if (request.state === "completed") return undefined;
  const fallback = request.state === "rejected" ? "rejected" : "agent_error";
  const code = request.error?.code ?? fallback;
  const row = failure(fallback);
  const message = request.error?.message ?? (text === "" ? row.message : preview(text, 1024));
  const { category = "UPSTREAM", provider, retryable = false } = request.error ?? {};
  return { ...row, category, code, message, retryable, ...(provider !== undefined && { provider }) };
}

const MOVE_OF: Record<ReplyRequest["state"], MoveName> = {
  completed: "complete",
  failed: "fail",
  rejected: "reject",
};

/** Makes the move only; the caller calls `afterMove`. */
export async function replyMove(
  broker: Pick<Broker, "log" | "writer">,
  id: string,
  params: Readonly<Record<string, string | number | undefined>>,
  request: Omit<ReplyRequest, "next" | "worker">,
): Promise<Result> {
  const message = toReply(request);
  const text = request.text ?? textOf(request.message ?? {});
  const error = toError(request, text);
  const errorJson = error && JSON.stringify(error);
  const move = (checked?: true) =>
    broker.writer.move({
      move: MOVE_OF[request.state],
      id,
      params: { retryable: error?.retryable, ...params, checked },
      event: {
        error: errorJson,
        response_preview: request.state === "completed" ? JSON.stringify(preview(text)) : undefined,
      },
      fields: { reply: message, error: errorJson },
      artifacts: (request.artifacts ?? []).map((artifact) => ({ artifact: withoutLease(artifact) })),
      bytes: Buffer.byteLength(message ?? ""),
      usage: request.usage,
      read: true,
    });
  const result = await withCheckedResult(id, request.message?.parts ?? [], move);
  const { outcome } = result;
  if (outcome.kind === "lease" && !isReclaimable(outcome)) {
    broker.log.info({ delegation_id: id, fence: params.fence, reason: outcome.reason }, "late reply");
  }
  return result;
}

export async function reply(
  broker: Moves & NamesFiles & Pick<Broker, "presence">,
  principal: Principal,
  leaseId: string,
  request: ReplyRequest,
): Promise<ReplyResult> {
  const { id, params } = holderOf(principal, leaseId);
  const { next: _next, worker, ...body } = request;
  const by = { reply_hash: bodyHash(body), ...params };
  const named = await nameFilesIn(broker, principal, id, body, params);
  const { outcome, record } = await asHolder(broker, id, params, () => replyMove(broker, id, by, named));
  if (outcome.kind === "ok" && record) {
    if (worker) broker.presence.paused(record.get("target"), worker);
    await afterMove(broker, id, outcome);
    return { outcome: "matched", record };
  }
  if (outcome.kind === "duplicate" && record) return { outcome: "duplicate", record };
  throw refusal(outcome, id, leaseId);
}
