/**
 * Calls the delegator's URL when its delegation ended or asks a question, signed by the Standard Webhooks scheme. At
 * least once; the receiver recognizes repeats by `webhook-id`. A call is given up after a day, and the call of a question
 * when 32 newer ones are queued.
 */
import { Webhook } from "standardwebhooks";
import { toEntry, toEventJson } from "../../events/entry.ts";
import { readEvent } from "../../events/stored.ts";
import { type ReadDelegation, readRecord } from "../../lifecycle/stored-delegation.ts";
import type { TicketData } from "../../queue/tickets.ts";
import { callbackSchema } from "../../schema/callback.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { Broker } from "../broker.ts";
import { httpCall } from "./http-call.ts";

const MAX_QUEUED = LIMITS.queued_calls.value;

/** Queues a call for each event that has none yet; beyond the limit, removes the oldest calls. */
export async function queueCallbacks(broker: Broker, id: string): Promise<void> {
  const record = await readRecord(broker.redis, broker.shards, id);
  if (!record) return;
  const seqs = [...record.notify.keys()].sort((a, b) => a - b);
  const added = seqs.filter((seq) => seq > record.get("notified_seq"));
  for (const seq of added.slice(-MAX_QUEUED)) await broker.outbound.add({ delegation_id: id, ticket: seq });
  // Removes as many old calls as were added. If the gateway dies first, `deliverCallback` gives them up.
  const tooOld = added.length === 0 ? [] : seqs.slice(0, -MAX_QUEUED).slice(-added.length);
  for (const seq of tooOld) await broker.outbound.remove({ delegation_id: id, ticket: seq });
}

/** True when there are too many newer calls. This call is then for a question that was answered long ago. */
const isTooOld = ({ notify }: ReadDelegation, seq: number): boolean =>
  [...notify.keys()].filter((one) => one > seq).length >= MAX_QUEUED;

/** Makes one call. Returns null when it is done or given up, or the delay before the next try, ms. */
export async function deliverCallback(
  broker: Broker,
  { delegation_id, ticket }: TicketData,
): Promise<number | null> {
  const keys = broker.shards.ofId(delegation_id);
  const record = await readRecord(broker.redis, broker.shards, delegation_id);
  const event_id = record?.notify.get(ticket);
  const callback = record?.get("callback");
  if (!keys || !record || !callback || event_id === undefined || isTooOld(record, ticket)) {
    broker.metrics.callbacks.inc({ outcome: "given_up" });
    const why = record ? "too many newer calls are queued" : "its delegation no longer exists";
    broker.log.warn({ delegation_id, seq: ticket }, `callback given up: ${why}`);
    return null;
  }
  const found = await readEvent(broker.redis, keys.delegationEvents(delegation_id), event_id);
  if (!found) return null;
  const { url, secret = [], token } = callbackSchema.parse(JSON.parse(callback));
  const stored = toEntry(broker.shards.indexOfId(delegation_id) ?? 0, event_id, found);
  const entry = await broker.bodies.load(stored);
  const body = toEventJson(entry, event_id);
  const headers = sign(`evt_${delegation_id}_${ticket}`, body, [secret].flat());
  const delegator = record.get("delegator");
  const about = { what: "callback", delegation_id, delegator, seq: ticket, url, since: entry.at } as const;
  const outcome = await httpCall(broker, about, {
    headers: { ...headers, ...(token && bearer(token)) },
    body,
  });
  return typeof outcome === "string" ? null : outcome.again_ms;
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** Signs with every secret, so that the receiver can rotate them. */
function sign(id: string, body: string, secrets: readonly string[]): Record<string, string> {
  const now = new Date();
  const signatures = secrets.map((secret) => new Webhook(secret).sign(id, now, body));
  return {
    "content-type": "application/json",
    "user-agent": "errand",
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(now.getTime() / 1000)),
    ...(signatures.length > 0 && { "webhook-signature": signatures.join(" ") }),
  };
}
