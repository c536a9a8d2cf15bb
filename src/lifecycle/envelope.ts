/**
 * What an agent gets with a lease: the delegation and an A2A SendMessage envelope for it.
 * Limit: the newest answer takes the message's place once there is one.
 */
import { messageSchema } from "../schema/a2a.ts";
import { toInstant } from "../schema/values.ts";
import type { StoredDelegation } from "./record.ts";

/** A lease of contract §5 as JSON text: the message has a contextId and never a taskId. */
export function leaseJson(record: StoredDelegation, lease_id: string): string {
  const { taskId: _dropped, ...message } = messageSchema.parse(JSON.parse(record.message));
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
