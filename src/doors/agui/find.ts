/**
 * Finds the delegation that a run is about, among those that the caller may see. Limit: a message that neither its key nor
 * its id leads to is searched in the newest delegations of the thread only.
 */
import { z } from "zod";
import { findDelegated } from "../../engine/delegations/delegate.ts";
import { type ListQuery, list } from "../../engine/delegations/list.ts";
import { openInterrupt } from "../../engine/delegations/parse.ts";
import { read } from "../../engine/delegations/read.ts";
import { notFound } from "../../engine/errors.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { type Message, messageSchema } from "../../schema/a2a.ts";
import type { RunAgentInput } from "../../schema/ag-ui-input.ts";
import { LIVE_STATES } from "../../schema/delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { AuthenticatedRequest } from "../http/authenticated-request.ts";
import { shownText, toParts } from "./content.ts";
import { keyOf, shownIn, taskOf, type UserMessage } from "./ids.ts";

/** How many of the thread's delegations are read to find a message: every new message costs this search. */
const SEARCHED = 20;
/** How many pages of open questions are read. A page covers a thousand delegations, unless very many of them ask. */
const PAGES = 10;

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

type Filter = Pick<ListQuery, "delegator" | "state" | "cursor"> & { readonly limit?: number };

/** A page of the thread, newest first. */
const page = ({ request, agent, input }: Run, filter: Filter) =>
  list(request.broker, request.principal, {
    ...{ target: agent, context_id: input.threadId, limit: SEARCHED },
    ...filter,
  });

const newest = async (run: Run, filter: Filter = {}): Promise<readonly StoredDelegation[]> =>
  (await page(run, filter)).records;

/** The caller's own delegations in the thread. */
const newestOwn = (run: Run, filter: Filter = {}) =>
  newest(run, { delegator: run.request.principal.text, ...filter });

const messagesSchema = z.array(messageSchema);

/** The task, and everything said since, of which the JSON contains this text. */
function messagesWith({ message, history }: StoredDelegation, text: string): readonly Message[] {
  const json = JSON.stringify(text);
  const some = [message, ...history].filter((one) => one.includes(json));
  return some.length === 0 ? [] : messagesSchema.parse(JSON.parse(`[${some.join(",")}]`));
}

/** The user's message with this id, which created the delegation or was sent to it later. */
const userMessage = (record: StoredDelegation, id: string): Message | undefined =>
  messagesWith(record, id).find(({ messageId, role }) => messageId === id && role === "ROLE_USER");

/** Whether the delegation has this message. Two principals may use the same id, so the text is compared, too. */
function has(record: StoredDelegation, { id, content }: UserMessage): boolean {
  const found = userMessage(record, id);
  return found !== undefined && shownText(found) === shownText({ parts: toParts(content) });
}

/** Whether the delegation has an answer to one of these questions. Parses once, because a run may name many. */
const answers = ({ history }: StoredDelegation, interruptIds: readonly unknown[]): boolean =>
  messagesSchema
    .parse(JSON.parse(`[${history.join(",")}]`))
    .some(({ role, metadata }) => role === "ROLE_USER" && interruptIds.includes(metadata?.interrupt_id));

/**
 * The delegation of the last user message, if the client has that message from the broker. Throws if that delegation is
 * gone: an earlier message is not what such a run is about.
 */
async function byShown({ request, agent, input }: Run): Promise<StoredDelegation | null> {
  const id = shownIn(input);
  if (id === undefined) return null;
  const shown = await read(request.broker, request.principal, id).catch((error: unknown) => {
    throw isNotFound(error) ? shownIsGone(id) : error;
  });
  // A client may send one conversation to several agents.
  return shown.target === agent && shown.context_id === input.threadId ? shown : null;
}

const isNotFound = (error: unknown): boolean =>
  error instanceof ErrandError && error.code === "delegation_not_found";

const shownIsGone = (id: string): ErrandError =>
  new ErrandError(
    "delegation_not_found",
    `There is no delegation '${id}', which has the last user message.`,
    {
      recovery:
        "Send a new user message to delegate. Finished delegations are deleted after the retention time.",
    },
  );

/** The delegation of the newest message that the client did not get from the broker, if its key leads to one. */
async function byTask(run: Run): Promise<StoredDelegation | null> {
  const task = taskOf(run.input);
  return task ? byKey(run, task.id) : null;
}

/**
 * For a run that delegates and cancels nothing: the delegation of the last user message, or if that is gone, of the newest
 * message of the client's own.
 */
async function byLastMessage(run: Run): Promise<StoredDelegation | null> {
  const shown = await byShown(run).catch((error: unknown) => {
    if (isNotFound(error)) return null;
    throw error;
  });
  return shown ?? byTask(run);
}

const byKey = ({ request, agent, input }: Run, messageId: string): Promise<StoredDelegation | null> =>
  findDelegated(request.broker, request.principal, keyOf(agent, input.threadId, messageId));

/** Whether a run of this caller with the delegation's task as its last message finds the delegation. */
export async function isFoundByTask(run: Run, record: StoredDelegation): Promise<boolean> {
  if (record.delegator !== run.request.principal.text) return false;
  const { messageId } = messageSchema.parse(JSON.parse(record.message));
  return (await byKey(run, messageId))?.id === record.id;
}

/**
 * For a run that may delegate: the delegation that has its last user message already, as a follow-up, as another
 * principal's task, or as one of a client that uses another API. Null for new work, and for a task that the caller
 * delegated over AG-UI: there its key decides whether it is delegated again.
 */
export async function findKnown(run: Run): Promise<StoredDelegation | null> {
  const shown = await byShown(run);
  if (shown) return shown;
  const task = taskOf(run.input);
  if (!task || (await byKey(run, task.id))) return null;
  return (await newest(run)).find((record) => has(record, task)) ?? null;
}

/** For a run that only attaches: the delegation of the last user message; without one, the newest of the thread. */
export async function findShown(run: Run): Promise<StoredDelegation> {
  const { delegation_id } = propsOf(run);
  if (delegation_id !== undefined) return named(run, delegation_id);
  const found = await byLastMessage(run);
  if (found) return found;
  const task = taskOf(run.input);
  const records = await newest(run);
  const shown = task ? records.find((record) => userMessage(record, task.id)) : records[0];
  if (shown) return shown;
  throw noneFound(`for ${task ? "the last user message" : "this thread"}`);
}

/** The delegation of the thread that asks one of these questions. */
async function findOpen(run: Run, interruptIds: readonly string[]): Promise<StoredDelegation | null> {
  let cursor: string | undefined;
  for (let pages = 0; pages < PAGES; pages += 1) {
    const { records, next_cursor } = await page(run, {
      ...{ state: ["input_required", "auth_required"] as const, limit: LIMITS.list_page.value },
      cursor,
    });
    const found = records.find((record) => asks(record, interruptIds));
    if (found || next_cursor === null) return found ?? null;
    cursor = next_cursor;
  }
  return null;
}

const asks = (record: StoredDelegation, interruptIds: readonly string[]): boolean =>
  interruptIds.includes(openInterrupt(record)?.id ?? "");

/**
 * For a run that answers. In this order: the named delegation, the one that asks one of these questions, the one that
 * has the last message, so that a repeated answer delegates nothing; for a run without a message, the one that has an
 * answer to one of these questions.
 */
export async function findAsking(
  run: Run,
  interruptIds: readonly string[],
): Promise<StoredDelegation | null> {
  const { delegation_id } = propsOf(run);
  if (delegation_id !== undefined) return named(run, delegation_id);
  const found = await byLastMessage(run);
  if (found && asks(found, interruptIds)) return found;
  const open = await findOpen(run, interruptIds);
  if (open ?? found) return open ?? found;
  const task = taskOf(run.input);
  const isKnown = (record: StoredDelegation) => (task ? has(record, task) : answers(record, interruptIds));
  return (await newest(run)).find(isKnown) ?? null;
}

/** For a cancel: the named delegation; else the caller's own, for the last user message, or the newest. */
export async function findCanceled(run: Run): Promise<StoredDelegation> {
  const { delegation_id } = propsOf(run);
  if (delegation_id !== undefined) return named(run, delegation_id);
  const found = (await byShown(run)) ?? (await byTask(run));
  if (found?.delegator === run.request.principal.text) return found;
  const task = taskOf(run.input);
  const own = found ? [] : await newestOwn(run);
  const canceled = task ? own.find((record) => userMessage(record, task.id)) : own[0];
  if (canceled) return canceled;
  throw noneFound(`of yours for ${found || task ? "the last user message" : "this thread"}`);
}

/** For a follow-up: the named delegation; else the caller's own that has it already, or the newest in progress. */
export async function findFollowed(run: Run, messageId: string): Promise<StoredDelegation> {
  const { delegation_id } = propsOf(run);
  if (delegation_id !== undefined) return named(run, delegation_id);
  const sent = (await newestOwn(run)).find((record) => userMessage(record, messageId));
  const [live] = sent ? [sent] : await newestOwn(run, { state: LIVE_STATES, limit: 1 });
  if (live) return live;
  throw noneFound("of yours in progress in this thread");
}

const noneFound = (what: string): ErrandError =>
  new ErrandError("delegation_not_found", `There is no delegation ${what}.`, {
    recovery:
      "Name the delegation with delegation_id, as another principal's must be to cancel it or to follow up; or run without attach, follow_up and cancel to delegate.",
  });
