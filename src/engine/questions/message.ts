/**
 * Sends a follow-up to queued or running work. It is added to the history, with its sender and time, and heartbeats
 * return it until the holder acknowledges it. Idempotent by messageId and content, also after the agent asked, or the
 * delegation ended.
 */
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import type { MessageRequest } from "../../schema/interrupt.ts";
import { type Principal, requireControl } from "../access/access.ts";
import { notifyReceivers } from "../after-move.ts";
import type { Broker, Records } from "../broker.ts";
import { bodyHash } from "../delegations/idempotency.ts";
import { read } from "../delegations/read.ts";
import { refusal } from "../errors.ts";
import { type NamesFiles, nameFilesOf } from "../files/name-files.ts";
import { ANSWER_METADATA, toUserMessage, withoutAnswerMetadata } from "./answer-message.ts";

export async function message(
  broker: NamesFiles & Pick<Broker, "clock" | "deliverPending" | "memory" | "writer">,
  principal: Principal,
  id: string,
  { text, message: sent }: MessageRequest,
): Promise<StoredDelegation> {
  const known = await read(broker, principal, id);
  requireControl(principal, known, "send it messages");
  const followUp = toUserMessage(
    sent
      ? { ...sent, metadata: withoutAnswerMetadata(sent.metadata, ANSWER_METADATA) }
      : { parts: [{ text: text ?? "" }] },
  );
  const at = new Date(Date.now() + broker.clock.offset_ms).toISOString();
  const metadata = { ...followUp.metadata, by: principal.text, at };
  const named = await nameFilesOf(broker, principal, id, { ...followUp, metadata });
  const json = JSON.stringify(named);
  const stored = { message_id: followUp.messageId, message_hash: bodyHash(followUp) };
  const { outcome, record } = await broker.writer.move({
    move: "message",
    id,
    params: {
      ...stored,
      max_kept: principal.text === known.get("delegator") ? broker.memory.maxKeptBytes(principal) : undefined,
    },
    event: { message: json, by: JSON.stringify(principal.text) },
    history: [json],
    read: true,
  });
  if (outcome.kind === "ok") notifyReceivers(broker, id, outcome);
  if ((outcome.kind === "ok" || outcome.kind === "duplicate") && record) return record;
  // The script checks the state first, so it does not recognize a repeat after the state has changed.
  if (outcome.kind === "state" && (await isStored(broker, id, stored))) return read(broker, principal, id);
  throw refusal(outcome, id);
}

async function isStored(
  { redis, shards }: Records,
  id: string,
  { message_id, message_hash }: { readonly message_id: string; readonly message_hash: string },
): Promise<boolean> {
  const keys = shards.ofId(id);
  return keys !== undefined && (await redis.hget(keys.delegation(id), `said:${message_id}`)) === message_hash;
}
