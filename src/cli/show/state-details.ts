/**
 * Explains why a delegation is in its state: its last worker, why it waits, how the last attempt ended. Limit: if a
 * delegation has more than 300 events, they are not read.
 */

import { Admin } from "../../client/admin.ts";
import { Delegator } from "../../client/delegator.ts";
import { ErrandApiError } from "../../client/errors.ts";
import { explainWait, retryAtOf } from "../../client/explain-wait.ts";
import type { ConnectionOptions } from "../../client/http.ts";
import { Pages } from "../../client/pages.ts";
import { durationText, nameOf } from "../../client/words.ts";
import type { Agent } from "../../schema/agent.ts";
import { type Delegation, isTerminal, type State } from "../../schema/delegation.ts";
import type { DelegationEvent, RetryingEvent, ReturnedEvent, StreamEvent } from "../../schema/event.ts";
import type { IsVoid, Senders } from "./history.ts";
import { oneLine } from "./output.ts";
import { missingText } from "./votes.ts";

const MAX_EVENTS = 300;

/** Rows that need more than the delegation itself. A row whose data cannot be read is omitted. */
export async function stateRows(
  connection: ConnectionOptions,
  delegation: Delegation,
): Promise<[string, string][]> {
  const { state, created_at, finished_at } = delegation;
  const [events, agent, asking] = await Promise.all([
    eventsOf(connection, delegation),
    state === "submitted" ? agentOf(connection, delegation.target) : undefined,
    state === "awaiting_children" ? askingParts(connection, delegation.id) : "",
  ]);
  const rows: [string, string][] = [];
  const worker = events.findLast((event) => "worker_id" in event)?.worker_id;
  if (worker !== undefined && state !== "working") rows.push(["worker", `${oneLine(worker)} (last)`]);
  const ended = events.findLast((event) => event.status === "reclaimed" || isEnd(event));
  if (ended && isEnd(ended) && !isTerminal(state)) rows.push(["last attempt", howEnded(ended)]);
  const why = waits(state) && explainWait({ ...delegation, retry_at: retryAtOf(events) }, agent);
  if (why) rows.push(["why", `${why}${asking}`]);
  if (finished_at) rows.push(["took", durationText(Date.parse(finished_at) - Date.parse(created_at))]);
  rows.push(...approvalRows(events));
  return rows;
}

/** The author and the time of each question and follow-up. Empty if the events are not read. */
export async function sendersOf(connection: ConnectionOptions, delegation: Delegation): Promise<Senders> {
  const senders = new Map<string, { by?: string | undefined; at: string }>();
  for (const event of await eventsOf(connection, delegation)) {
    if (event.status === "message") senders.set(event.message.messageId, event);
    if (event.status !== "interrupted") continue;
    for (const { message } of event.interrupt.requests)
      senders.set(message.messageId, { by: delegation.target, at: event.at });
  }
  return senders;
}

/**
 * Tells the approvals that count no longer: those that are not among the votes that the newest event about their question
 * names. None if the events are not read.
 */
export async function voidVotesOf(connection: ConnectionOptions, delegation: Delegation): Promise<IsVoid> {
  if (!delegation.history.some(({ metadata }) => metadata?.vote === true)) return () => false;
  const counted = new Map<string, Set<string>>();
  for (const event of await eventsOf(connection, delegation)) {
    if (!("votes" in event) || event.votes === undefined || event.interrupt_id === undefined) continue;
    const own = event.status === "answered" ? [{ by: event.by, at: event.at }] : [];
    counted.set(event.interrupt_id, new Set([...event.votes, ...own].map(({ by, at }) => `${by} ${at}`)));
  }
  return ({ metadata: { vote, interrupt_id, by, at } = {} }) =>
    vote === true && counted.get(String(interrupt_id))?.has(`${by} ${at}`) === false;
}

/** Of a question that expired: who approved it. */
function approvalRows(events: readonly StreamEvent[]): [string, string][] {
  const end = events.find((event) => "needed" in event && event.type === "DELEGATION_FAILED");
  const approvals = end?.type === "DELEGATION_FAILED" ? missingText(end) : "";
  return approvals === "" ? [] : [["approvals", oneLine(approvals)]];
}

/** Whether it ends an attempt but not the delegation. */
const isEnd = (event: StreamEvent): event is ReturnedEvent | RetryingEvent =>
  event.status === "retrying" || event.status === "lease_expired" || event.status === "released";

function howEnded(event: ReturnedEvent | RetryingEvent): string {
  if (event.status === "retrying")
    return `failed: ${oneLine(event.error.code)}: ${oneLine(event.error.message, 200)}`;
  if (event.status === "lease_expired") return "the worker gave no sign of life";
  return `released by the worker${event.reason === undefined ? "" : `: ${oneLine(event.reason, 200)}`}`;
}

/** Whether it may say why no worker has it. */
export const waits = (state: State): boolean => state === "submitted" || state === "awaiting_children";

/** Why no worker has the delegation, or the one of the event; null unless it is queued or waits for children. */
export async function whyWaits(
  connection: ConnectionOptions,
  what: Delegation | DelegationEvent,
  signal?: AbortSignal,
): Promise<string | null> {
  if (!waits(what.state)) return null;
  const isEvent = "delegation_id" in what;
  const id = isEvent ? what.delegation_id : what.id;
  const [events, agent, asking] = await Promise.all([
    // A delegation of version 1 has only the event of its submit.
    isEvent ? [what] : what.version > 1 ? eventsOf(connection, what, signal) : [],
    what.state === "submitted" ? agentOf(connection, what.target, signal) : undefined,
    what.state === "awaiting_children" ? askingParts(connection, id, signal) : "",
  ]);
  const waiting = isEvent ? { ...what, not_before_at: null, interrupt: null } : what;
  const why = explainWait({ ...waiting, retry_at: retryAtOf(events) }, agent);
  return why && `${why}${asking}`;
}

/** A sentence for the parts that ask, because nothing goes on before somebody answers; empty if none does. */
async function askingParts(connection: ConnectionOptions, id: string, signal?: AbortSignal): Promise<string> {
  const tree = await quietly(new Delegator(connection).nodes(id, { signal }));
  const [first, ...others] = tree?.nodes.filter((node) => node.id !== id && asks(node.state)) ?? [];
  if (first === undefined) return "";
  const more = others.length === 0 ? "" : `, and so do ${others.length} more`;
  return ` Its part ${first.id} of ${first.target} asks ${nameOf(first.delegator)} or an approver a question${more}.`;
}

const asks = (state: State): boolean => state === "input_required" || state === "auth_required";

async function eventsOf(
  connection: ConnectionOptions,
  { id, version }: Delegation,
  signal?: AbortSignal,
): Promise<StreamEvent[]> {
  if (version > MAX_EVENTS) return [];
  return (await quietly(new Pages(connection).events(id, MAX_EVENTS, signal))) ?? [];
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
