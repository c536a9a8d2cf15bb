/**
 * Calls the delegator's URL when its delegation ended or asks a question, signed by the Standard Webhooks scheme. At
 * least once; the receiver recognizes repeats by `webhook-id`. A call is given up after a day, and the call of a question
 * when 32 newer ones are queued. The record lists the calls that are left, by the number of the event (`notify`).
 */
import { Webhook } from "standardwebhooks";
import { toEntry, toEventJson } from "../../events/entry.ts";
import { readEvent } from "../../events/stored.ts";
import { type ReadDelegation, readRecord } from "../../lifecycle/stored-delegation.ts";
import { callbackSchema } from "../../schema/callback.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { Broker } from "../broker.ts";
import { httpCall } from "./http-call.ts";

const MAX_QUEUED = LIMITS.queued_calls.value;

const jobOf = (delegation_id: string, seq: number) => ({ kind: "callback", delegation_id, seq }) as const;

const inOrder = ({ notify }: ReadDelegation): number[] => [...notify.keys()].sort((a, b) => a - b);

/** Queues a call for each event that has none yet. Beyond the limit, removes the oldest calls and returns their numbers. */
export async function queueCallbacks(broker: Broker, id: string): Promise<number[]> {
  const record = await readRecord(broker.redis, broker.shards, id);
  if (!record) return [];
  const seqs = inOrder(record);
  for (const seq of seqs.slice(-MAX_QUEUED)) {
    if (seq > record.get("notified_seq")) await broker.outbound.add(jobOf(id, seq));
  }
  const tooOld = seqs.slice(0, -MAX_QUEUED);
  for (const seq of tooOld) await broker.outbound.remove(jobOf(id, seq));
  return tooOld;
}

/** The jobs of the calls that were queued and are not made. */
export const callbackJobs = (record: ReadDelegation) =>
  inOrder(record)
    .filter((seq) => seq <= record.get("notified_seq"))
    .map((seq) => jobOf(record.id, seq));

/** True when there are too many newer calls. This call is then for a question that was answered long ago. */
const isTooOld = ({ notify }: ReadDelegation, seq: number): boolean =>
  [...notify.keys()].filter((one) => one > seq).length >= MAX_QUEUED;

/** Makes one call. Returns null when it is done or given up, or the delay before the next try, ms. */
export async function deliverCallback(
  broker: Broker,
  { delegation_id, seq }: { readonly delegation_id: string; readonly seq: number },
): Promise<number | null> {
  const record = await readRecord(broker.redis, broker.shards, delegation_id);
  if (!record) return giveUp(broker, { delegation_id, seq }, "its delegation no longer exists");
  const event_id = record.notify.get(seq);
  if (event_id === undefined) return null;
  const again = isTooOld(record, seq)
    ? giveUp(broker, { delegation_id, seq }, "too many newer calls are queued")
    : await callBack(broker, record, seq, event_id);
  if (again !== null) return again;
  await removeFromRecord(broker, record, seq);
  return null;
}

function giveUp({ metrics, log }: Broker, call: { delegation_id: string; seq: number }, why: string): null {
  metrics.callbacks.inc({ outcome: "given_up" });
  log.warn(call, `callback given up: ${why}`);
  return null;
}

/** After this the sweep does not queue the call again. */
async function removeFromRecord(broker: Broker, { id, notify }: ReadDelegation, seq: number): Promise<void> {
  const last = notify.size === 1;
  await broker.writer.move({ move: "follow_up", id, params: { called: [String(seq)], last } });
}

async function callBack(
  broker: Broker,
  record: ReadDelegation,
  seq: number,
  event_id: string,
): Promise<number | null> {
  const { id: delegation_id } = record;
  const delegator = record.get("delegator");
  const callback = record.get("callback");
  const keys = broker.shards.ofId(delegation_id);
  const found = keys && (await readEvent(broker.redis, keys.delegationEvents(delegation_id), event_id));
  if (!found || callback === null)
    return giveUp(broker, { delegation_id, seq }, "its event no longer exists");
  const { url, secret = [], token } = callbackSchema.parse(JSON.parse(callback));
  const stored = toEntry(broker.shards.indexOfId(delegation_id) ?? 0, event_id, found);
  const entry = await broker.bodies.load(stored);
  const body = toEventJson(entry, event_id);
  const headers = sign(`evt_${delegation_id}_${seq}`, body, [secret].flat());
  const about = { what: "callback", delegation_id, delegator, seq, url, since: entry.at } as const;
  const outcome = await httpCall(broker, about, {
    headers: { ...headers, ...(token && bearer(token)) },
    body,
  });
  return typeof outcome === "string" ? null : outcome.again_ms;
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** Signs with every secret, so that the receiver can rotate them. */
export function sign(
  id: string,
  body: string,
  secrets: readonly string[],
  now = new Date(),
): Record<string, string> {
  const signatures = secrets.map((secret) => new Webhook(secret).sign(id, now, body));
  return {
    "content-type": "application/json",
    "user-agent": "errand",
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(now.getTime() / 1000)),
    ...(signatures.length > 0 && { "webhook-signature": signatures.join(" ") }),
  };
}
