/**
 * Explains why a delegation is in its state: its last worker, why it waits, how the last attempt ended. Limit: if a
 * delegation has more than 300 events, they are not read.
 */

import * as z from "zod";
import { Admin } from "../../client/admin.ts";
import { ErrandApiError } from "../../client/errors.ts";
import { explainWait, retryAtOf } from "../../client/explain-wait.ts";
import type { ConnectionOptions } from "../../client/http.ts";
import { Pages } from "../../client/pages.ts";
import { durationText } from "../../client/words.ts";
import type { Agent } from "../../schema/agent.ts";
import { type Delegation, isTerminal } from "../../schema/delegation.ts";
import type { DelegationEvent, StreamEvent } from "../../schema/event.ts";
import type { Senders } from "./history.ts";
import { oneLine } from "./output.ts";

const MAX_EVENTS = 300;

const optional = <T>(schema: z.ZodType<T>) => schema.optional().catch(undefined);
const eventFieldsSchema = z.object({
  status: optional(z.string()),
  worker_id: optional(z.string()),
  retry_at: optional(z.string()),
  error: optional(z.object({ code: z.string(), message: z.string() })),
  reason: optional(z.string()),
  at: optional(z.string()),
  by: optional(z.string()),
  message: optional(z.object({ messageId: z.string() })),
  interrupt: optional(
    z.object({ requests: z.array(z.object({ message: z.object({ messageId: z.string() }) })) }),
  ),
});
type EventFields = z.infer<typeof eventFieldsSchema>;

/** Rows that need more than the delegation itself. A row whose data cannot be read is omitted. */
export async function stateRows(
  connection: ConnectionOptions,
  delegation: Delegation,
): Promise<[string, string][]> {
  const { state, created_at, finished_at } = delegation;
  const [events, agent] = await Promise.all([
    eventsOf(connection, delegation),
    state === "submitted" ? agentOf(connection, delegation.target) : undefined,
  ]);
  const rows: [string, string][] = [];
  const worker = events.findLast(({ worker_id }) => worker_id !== undefined)?.worker_id;
  if (worker !== undefined && state !== "working") rows.push(["worker", `${oneLine(worker)} (last)`]);
  const ended = events.findLast(({ status }) => status === "reclaimed" || ENDS.includes(status ?? ""));
  if (ended && ended.status !== "reclaimed" && !isTerminal(state))
    rows.push(["last attempt", howEnded(ended)]);
  const why = state === "submitted" && explainWait({ ...delegation, retry_at: retryAtOf(events) }, agent);
  if (why) rows.push(["why", why]);
  if (finished_at) rows.push(["took", durationText(Date.parse(finished_at) - Date.parse(created_at))]);
  return rows;
}

/** The author and the time of each question and follow-up. Empty if the events are not read. */
export async function sendersOf(connection: ConnectionOptions, delegation: Delegation): Promise<Senders> {
  const senders = new Map<string, { by?: string | undefined; at: string }>();
  for (const { at, by, message, interrupt } of await eventsOf(connection, delegation)) {
    if (at === undefined) continue;
    if (message) senders.set(message.messageId, { by, at });
    for (const request of interrupt?.requests ?? [])
      senders.set(request.message.messageId, { by: delegation.target, at });
  }
  return senders;
}

/** Statuses of events that end an attempt but not the delegation. */
const ENDS: readonly string[] = ["retrying", "lease_expired", "released"];

function howEnded({ status, error, reason }: EventFields): string {
  if (error) return `failed: ${oneLine(error.code)}: ${oneLine(error.message, 200)}`;
  if (status === "lease_expired") return "its lease expired without a call";
  return `released by the worker${reason === undefined ? "" : `: ${oneLine(reason, 200)}`}`;
}

/** Why no worker has the delegation, or the one of the event; null unless it is queued. */
export async function whyQueued(
  connection: ConnectionOptions,
  what: Delegation | DelegationEvent,
  signal?: AbortSignal,
): Promise<string | null> {
  if (what.state !== "submitted") return null;
  const isEvent = "delegation_id" in what;
  const [events, agent] = await Promise.all([
    // A delegation of version 1 has only the event of its submit.
    isEvent ? [what] : what.version > 1 ? eventsOf(connection, what, signal) : [],
    agentOf(connection, what.target, signal),
  ]);
  const waiting = isEvent ? { ...what, not_before_at: null, interrupt: null } : what;
  return explainWait({ ...waiting, retry_at: retryAtOf(events) }, agent);
}

async function eventsOf(
  connection: ConnectionOptions,
  { id, version }: Delegation,
  signal?: AbortSignal,
): Promise<EventFields[]> {
  if (version > MAX_EVENTS) return [];
  const events = await quietly(new Pages(connection).events(id, MAX_EVENTS, signal));
  return (events ?? []).map((event: StreamEvent) => eventFieldsSchema.parse(event));
}

const agentOf = (
  connection: ConnectionOptions,
  target: string,
  signal?: AbortSignal,
): Promise<Agent | undefined> => quietly(new Admin(connection).getAgent(target, { signal }));

/** Resolves with undefined if the broker refuses the call or is unavailable. */
function quietly<T>(call: Promise<T>): Promise<T | undefined> {
  return call.catch((error: unknown) => {
    if (error instanceof ErrandApiError) return undefined;
    throw error;
  });
}
