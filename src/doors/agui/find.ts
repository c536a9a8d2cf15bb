/** Finds the delegation that a run is about, among those that the caller may see. */
import { findDelegated } from "../../engine/delegations/delegate.ts";
import { list } from "../../engine/delegations/list.ts";
import { openInterrupt } from "../../engine/delegations/parse.ts";
import { read } from "../../engine/delegations/read.ts";
import { notFound } from "../../engine/errors.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import type { RunAgentInput } from "../../schema/ag-ui-input.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { AuthenticatedRequest } from "../http/authenticated-request.ts";
import { keyOf, taskOf } from "./ids.ts";

/** The thread's newest delegations; older ones are found by their id or their message. */
const SEARCHED = 20;

export interface Run {
  readonly request: AuthenticatedRequest;
  readonly agent: string;
  readonly input: RunAgentInput;
}

export const propsOf = ({ input }: Pick<Run, "input">) => input.forwardedProps.errand ?? {};

async function named({ request, agent, input }: Run, id: string): Promise<StoredDelegation> {
  const record = await read(request.broker, request.principal, id);
  if (record.target !== agent) throw notFound(id);
  if (record.context_id === input.threadId) return record;
  throw new ErrandError("invalid_request", `The delegation ${id} belongs to another thread.`, {
    details: { issues: [{ path: "threadId", reason: "send the context_id of the delegation" }] },
    delegation_id: id,
    delegation_valid: !record.finished,
  });
}

async function inThread({ request, agent, input }: Run): Promise<readonly StoredDelegation[]> {
  const { broker, principal } = request;
  const query = { target: agent, context_id: input.threadId, limit: SEARCHED };
  return (await list(broker, principal, query)).records;
}

/** True if the message created the delegation, or was sent to it as a follow-up. */
function has({ message, history }: StoredDelegation, messageId: string): boolean {
  const name = `"messageId":${JSON.stringify(messageId)}`;
  return [message, ...history].some((json) => json.includes(name));
}

async function byMessage({ request, agent, input }: Run): Promise<StoredDelegation | null> {
  const task = taskOf(input);
  if (!task) return null;
  return findDelegated(request.broker, request.principal, keyOf(agent, input.threadId, task.id));
}

/** For a run that only attaches: the delegation of the last user message; without one, the newest of the thread. */
export async function findShown(run: Run): Promise<StoredDelegation> {
  const { delegation_id } = propsOf(run);
  if (delegation_id !== undefined) return named(run, delegation_id);
  const found = await byMessage(run);
  if (found) return found;
  const task = taskOf(run.input);
  const records = await inThread(run);
  const shown = task ? records.find((record) => has(record, task.id)) : records[0];
  if (shown) return shown;
  throw noneFound(task ? "the last user message" : "this thread");
}

/** True if one of these questions was asked by the delegation and has an answer. */
const answered = ({ history }: StoredDelegation, interruptIds: readonly string[]): boolean =>
  interruptIds.some((id) => history.some((json) => json.includes(`"interrupt_id":${JSON.stringify(id)}`)));

/**
 * For a run that answers. In this order: the named delegation, the one that asks one of these questions, the one that
 * has the last message. The last covers the messages of other principals and follow-ups, so that a repeated answer
 * delegates nothing; for a run without a message, it is the one that has an answer to one of these questions.
 */
export async function findAsking(
  run: Run,
  interruptIds: readonly string[],
): Promise<StoredDelegation | null> {
  const { delegation_id } = propsOf(run);
  if (delegation_id !== undefined) return named(run, delegation_id);
  const asks = (record: StoredDelegation) => interruptIds.includes(openInterrupt(record)?.id ?? "");
  const found = await byMessage(run);
  if (found && asks(found)) return found;
  const records = await inThread(run);
  const task = taskOf(run.input);
  const isKnown = (record: StoredDelegation) =>
    task ? has(record, task.id) : answered(record, interruptIds);
  return records.find(asks) ?? found ?? records.find(isKnown) ?? null;
}

/** For a follow-up: the delegation that already has this message, or else the thread's newest in progress. */
export async function findFollowed(run: Run, messageId: string): Promise<StoredDelegation> {
  const { delegation_id } = propsOf(run);
  if (delegation_id !== undefined) return named(run, delegation_id);
  const records = await inThread(run);
  const found = records.find((record) => has(record, messageId)) ?? records.find(({ finished }) => !finished);
  if (found) return found;
  throw noneFound("this thread");
}

const noneFound = (what: string): ErrandError =>
  new ErrandError("delegation_not_found", `There is no delegation for ${what}.`, {
    recovery:
      "Run without attach, follow_up and cancel to delegate, or name the delegation with delegation_id.",
  });
