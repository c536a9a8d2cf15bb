/**
 * What an agent gets with a lease: the delegation and an A2A SendMessage envelope for it.
 * Limit: the newest answer takes the message's place once there is one; what came before is in the history.
 */
import { z } from "zod";
import { type Message, messageSchema } from "../schema/a2a.ts";
import { toInstant } from "../schema/values.ts";
import type { StoredDelegation } from "./record.ts";

const historySchema = z.array(messageSchema);

/** The messages of a delegation's history, oldest first. */
export function historyOf(record: StoredDelegation): Message[] {
  return record.history.length === 0 ? [] : historySchema.parse(JSON.parse(`[${record.history.join(",")}]`));
}

/** The newest answer; answers to several requests of one question are one message. */
function newestAnswer(record: StoredDelegation): Message | undefined {
  if (record.answered === 0) return undefined;
  const answers = historyOf(record).filter(
    ({ role, metadata }) => role === "ROLE_USER" && metadata?.interrupt_id !== undefined,
  );
  const last = answers.at(-1);
  if (!last) return undefined;
  const together = answers.filter(({ metadata }) => metadata?.interrupt_id === last.metadata?.interrupt_id);
  return { ...last, parts: together.flatMap(({ parts }) => parts) };
}

/** A lease of contract §5 as JSON text: the message has a contextId and never a taskId. */
export function leaseJson(record: StoredDelegation, lease_id: string): string {
  const { taskId: _dropped, ...message } =
    newestAnswer(record) ?? messageSchema.parse(JSON.parse(record.message));
  const request = {
    jsonrpc: "2.0",
    id: lease_id,
    method: "SendMessage",
    params: {
      message: {
        ...message,
        contextId: record.context_id,
        metadata: { ...message.metadata, delegation_id: record.id, lease_id },
      },
    },
  };
  const expires_at = toInstant(record.lease_expires_at ?? 0);
  const head = JSON.stringify({ lease_id, expires_at, attempt: record.attempt });
  const trace = record.traceparent === null ? "" : `,"traceparent":${JSON.stringify(record.traceparent)}`;
  return `${head.slice(0, -1)},"delegation":${record.json},"request":${JSON.stringify(request)}${trace}}`;
}
