/**
 * Finds the delegation that a run is about. A thread belongs to its caller, so only the caller's own delegations are
 * searched for a message. A visible delegation of another principal is found only by an id of the broker: of the
 * delegation, of a message, or of a question. Limit: only the newest delegations of the thread are searched.
 */
import * as z from "zod";
import { findDelegated as findByIdempotencyKey } from "../../engine/delegations/delegate.ts";
import { openInterrupt } from "../../engine/delegations/parse.ts";
import { read } from "../../engine/delegations/read.ts";
import { findByMessages, findByQuestion, findNewest } from "../../engine/delegations/search.ts";
import { notFound } from "../../engine/errors.ts";
import type { MessageTexts } from "../../lifecycle/read-messages.ts";
import { ASKED } from "../../lifecycle/states.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { type Message, messageSchema } from "../../schema/a2a.ts";
import type { RunAgentInput } from "../../schema/ag-ui-input.ts";
import { LIVE_STATES } from "../../schema/delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import { parseJson } from "../../util/parse-json.ts";
import type { AuthenticatedRequest } from "../http/authenticated-request.ts";
import { hasParts, shownText } from "./content.ts";
import { keyOf, shownIn, taskOf, type UserMessage } from "./ids.ts";

/** How many of the thread's delegations are searched for a message. Every new message costs this search. */
const SEARCHED = 20;

export interface Run {
  readonly request: AuthenticatedRequest;
  readonly agent: string;
  readonly input: RunAgentInput;
}

export const propsOf = ({ input }: Pick<Run, "input">) => input.forwardedProps.errand ?? {};

/** The thread's delegations that the caller may see. */
const visibleQuery = ({ agent, input }: Run) => ({ target: agent, context_id: input.threadId });

/** The caller's own delegations in the thread. */
const ownQuery = (run: Run) => ({ ...visibleQuery(run), delegator: run.request.principal.text });

async function findNamed({ request, agent, input }: Run, id: string): Promise<StoredDelegation> {
  const record = await read(request.broker, request.principal, id);
  if (record.get("target") !== agent) throw notFound(id);
  if (record.get("context_id") === input.threadId) return record;
  throw new ErrandError("invalid_request", `The delegation ${id} belongs to another thread.`, {
    details: { issues: [{ path: "threadId", reason: "send the context_id of the delegation" }] },
    delegation_id: id,
    delegation_valid: !record.finished,
  });
}

const messagesSchema = z.array(messageSchema);
/** A text that cannot be read has no messages. */
const parsed = (text: string): readonly Message[] =>
  messagesSchema.safeParse(parseJson(`[${text}]`)).data ?? [];

/** Whether this message is the user's. Principals may use the same id, so the parts count, too. */
const isSame = ({ id, content }: UserMessage, { messageId, role, parts }: Message): boolean =>
  messageId === id && role === "ROLE_USER" && hasParts(content, parts);

/** Whether the message is the delegation's task. */
export const isTask = (message: UserMessage, text: string): boolean =>
  parsed(text).some((one) => isSame(message, one));

/** Whether the message is among these. */
const includesMessage = ({ task, history }: MessageTexts, message: UserMessage): boolean =>
  [...(task === null ? [] : [task]), ...history].some((text) => isTask(message, text));

/** Whether one of these messages answers one of the questions. A task may have such metadata, but answers nothing. */
const includesAnswer = ({ history }: MessageTexts, interruptIds: readonly string[]): boolean =>
  history
    .flatMap(parsed)
    .some(
      ({ role, metadata }) =>
        role === "ROLE_USER" && interruptIds.some((interruptId) => interruptId === metadata?.interrupt_id),
    );

// The parts by which stored texts are selected: the broker writes JSON without spaces. Each costs time, so they are few.
const messagePart = ({ id }: UserMessage): string => `"messageId":${JSON.stringify(id)}`;
const answerPart = ([only = "", second]: readonly string[]): string =>
  second === undefined ? `"interrupt_id":${JSON.stringify(only)}` : '"interrupt_id":';

/** The caller's delegation that has this message as its task or as a follow-up, of the thread's newest; a live one first. */
const findWithMessage = (run: Run, message: UserMessage): Promise<StoredDelegation | null> =>
  findByMessages(run.request.broker, run.request.principal, ownQuery(run), {
    most: SEARCHED,
    parts: [messagePart(message)],
    includes: (texts) => includesMessage(texts, message),
  });

/**
 * The delegation of the last user message, if the broker gave that message to the client. Throws if this delegation
 * is deleted: the run is not about an earlier message.
 */
async function findByBrokerMessage({ request, agent, input }: Run): Promise<StoredDelegation | null> {
  const id = shownIn(input);
  if (id === undefined) return null;
  const shown = await read(request.broker, request.principal, id).catch((error: unknown) => {
    throw isNotFound(error) ? brokerMessageGone(id) : error;
  });
  // A client may send one conversation to several agents.
  return shown.get("target") === agent && shown.get("context_id") === input.threadId ? shown : null;
}

const isNotFound = (error: unknown): boolean =>
  error instanceof ErrandError && error.code === "delegation_not_found";

const brokerMessageGone = (id: string): ErrandError =>
  new ErrandError(
    "delegation_not_found",
    `The last user message belongs to the delegation '${id}', which does not exist.`,
    {
      recovery:
        "Send a new user message to delegate. Finished delegations are deleted after the retention time.",
    },
  );

const findByKey = ({ request, agent, input }: Run, messageId: string): Promise<StoredDelegation | null> =>
  findByIdempotencyKey(request.broker, request.principal, keyOf(agent, input.threadId, messageId));

/** The delegation of the last user message: by the id that the broker gave to it, or by its key. */
async function findByLastMessage(run: Run): Promise<StoredDelegation | null> {
  const shown = await findByBrokerMessage(run);
  if (shown) return shown;
  const task = taskOf(run.input);
  return task ? findByKey(run, task.id) : null;
}

/** Whether a run of this caller with the delegation's task, as messages show it, finds the delegation. */
export async function isFoundByTask(run: Run, record: StoredDelegation): Promise<boolean> {
  if (record.get("delegator") !== run.request.principal.text) return false;
  const [message] = parsed(record.get("message"));
  if (!message || !hasParts(shownText(message), message.parts)) return false;
  return (await findByKey(run, message.messageId))?.id === record.id;
}

/**
 * For a run that may delegate: the delegation that has its last user message already. Null for new work, and for a task
 * that the caller delegated over AG-UI: there its key decides whether it is delegated again.
 */
export async function findDelegated(run: Run): Promise<StoredDelegation | null> {
  const shown = await findByBrokerMessage(run);
  if (shown) return shown;
  requireOwnLast(run);
  const task = taskOf(run.input);
  if (!task || (await findByKey(run, task.id))) return null;
  return findWithMessage(run, task);
}

/** The messages before one that the broker showed elsewhere are done: none of them is new work or a follow-up. */
function requireOwnLast({ input }: Run): void {
  if (shownIn(input) === undefined) return;
  const reason = "the last user message belongs to a delegation of another thread or agent; send a new one";
  throw new ErrandError("invalid_request", `messages: ${reason}`, {
    details: { issues: [{ path: "messages", reason }] },
  });
}

/** For a run that attaches: the delegation of the last user message; without one, the caller's newest of the thread. */
export async function findAttached(run: Run): Promise<StoredDelegation> {
  const { delegation_id } = propsOf(run);
  if (delegation_id !== undefined) return findNamed(run, delegation_id);
  const found = (await findByLastMessage(run)) ?? (await findOwn(run));
  if (found) return found;
  throw noneFound(taskOf(run.input) ? "with the last user message" : "in this thread");
}

/** The caller's delegation that has the last user message of the client's own; without one, the newest. */
function findOwn(run: Run): Promise<StoredDelegation | null> {
  const task = taskOf(run.input);
  if (task) return findWithMessage(run, task);
  return findNewest(run.request.broker, run.request.principal, ownQuery(run));
}

/** For a run without a user message of the client's own: the caller's newest live delegation of the thread. */
const findOwnLive = async (run: Run): Promise<StoredDelegation | null> =>
  taskOf(run.input) ? null : findNewestLive(run);

const findNewestLive = (run: Run): Promise<StoredDelegation | null> =>
  findNewest(run.request.broker, run.request.principal, { ...ownQuery(run), state: LIVE_STATES });

/**
 * For a run that answers. In this order: the named delegation; the one that asks one of these questions; the one of the
 * last user message; the one that has an answer to one of these questions, unless the run has new work.
 */
export async function findForResume(
  run: Run,
  interruptIds: readonly string[],
): Promise<StoredDelegation | null> {
  const { delegation_id } = propsOf(run);
  if (delegation_id !== undefined) return findNamed(run, delegation_id);
  const { broker, principal } = run.request;
  // If its delegation is deleted, the run may still answer another one.
  const [last] = await Promise.allSettled([findByLastMessage(run)]);
  if (last.status === "rejected" && !isNotFound(last.reason)) throw last.reason;
  const found = last.status === "fulfilled" ? last.value : null;
  if (found && interruptIds.includes(openInterrupt(found)?.id ?? "")) return found;
  const asking = { ...visibleQuery(run), state: ASKED };
  const open = await findByQuestion(broker, principal, asking, interruptIds);
  if (open) return open;
  if (last.status === "rejected") throw last.reason;
  if (found) return found;
  const task = taskOf(run.input);
  return findByMessages(broker, principal, visibleQuery(run), {
    most: SEARCHED,
    parts: [answerPart(interruptIds), ...(task ? [messagePart(task)] : [])],
    includes: (texts) => includesAnswer(texts, interruptIds) && (!task || includesMessage(texts, task)),
  });
}

/**
 * For a cancel: the named delegation; else the caller's own: for the last user message, or without one the newest live one,
 * or the newest.
 */
export async function findCanceled(run: Run): Promise<StoredDelegation> {
  const { delegation_id } = propsOf(run);
  if (delegation_id !== undefined) return findNamed(run, delegation_id);
  const found = (await findByLastMessage(run)) ?? (await findOwnLive(run)) ?? (await findOwn(run));
  if (found?.get("delegator") === run.request.principal.text) return found;
  throw noneFound(found || taskOf(run.input) ? "with the last user message" : "in this thread");
}

/** For a follow-up: the named delegation; else the caller's own that has it already, or the newest that is live. */
export async function findFollowed(run: Run, message: UserMessage): Promise<StoredDelegation> {
  const { delegation_id } = propsOf(run);
  if (shownIn(run.input) !== undefined && !(await findByBrokerMessage(run))) requireOwnLast(run);
  if (delegation_id !== undefined) return findNamed(run, delegation_id);
  const found = (await findWithMessage(run, message)) ?? (await findNewestLive(run));
  if (found) return found;
  throw noneFound("in progress in this thread");
}

const noneFound = (which: string): ErrandError =>
  new ErrandError("delegation_not_found", `There is no delegation of yours ${which}.`, {
    recovery:
      "Name the delegation with delegation_id, as one of another principal must be. To delegate, run without attach, follow_up and cancel.",
  });
