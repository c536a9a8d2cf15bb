/**
 * The start of a run, before its stream begins: it delegates, attaches, answers, follows up or cancels. Each is one verb
 * of the engine. An error becomes an HTTP status.
 */
import { cancel } from "../../engine/delegations/cancel.ts";
import { delegate } from "../../engine/delegations/delegate.ts";
import { bodyHash } from "../../engine/delegations/idempotency.ts";
import { openInterrupt } from "../../engine/delegations/parse.ts";
import { answer } from "../../engine/questions/answer.ts";
import { message as followUp } from "../../engine/questions/message.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import type { MessageInput } from "../../schema/a2a.ts";
import type { AgUiProps, ResumeEntry, RunAgentInput } from "../../schema/ag-ui-input.ts";
import { offersDenial } from "../../schema/choices.ts";
import { type DelegateRequest, delegateRequestSchema, type Interrupt } from "../../schema/delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import { invalidRequest, readAs } from "../../schema/issues.ts";
import { traceparentOf } from "../http/trace.ts";
import { toAnswerRequest, toDenial } from "./answer.ts";
import { toParts } from "./content.ts";
import {
  findAttached,
  findCanceled,
  findDelegated,
  findFollowed,
  findForResume,
  isFoundByTask,
  isTask,
  propsOf,
  type Run,
} from "./find.ts";
import { keyOf, taskOf, type UserMessage } from "./ids.ts";

/** The entries in `resume` that changed nothing, and why: the run is a cancel or a follow-up, or they are not open. */
export interface IgnoredEntries {
  readonly reason: "not_open" | "cancel" | "follow_up";
  readonly message: string;
  readonly interrupt_ids: readonly string[];
}

interface Started {
  readonly record: StoredDelegation;
  readonly ignored: IgnoredEntries | null;
}

export interface Begun extends Started {
  /**
   * Whether the task keeps its sender's id, and does not get one of the broker. It does if the client has no message of its
   * own, and a run with the task as it is shown finds this delegation.
   */
  readonly keepsTaskId: boolean;
}

export async function begin(run: Run): Promise<Begun> {
  const { broker } = run.request;
  // Throws for an agent that does not exist.
  await broker.agents.get(run.agent);
  const started = await start(run);
  const keepsTaskId = taskOf(run.input) === undefined && (await isFoundByTask(run, started.record));
  return { ...started, keepsTaskId };
}

async function start(run: Run): Promise<Started> {
  const { attach, follow_up, cancel: cancelSetting = false } = propsOf(run);
  // A client library may demand an entry for every question that it knows, also in a run that answers none.
  const resume = run.input.resume ?? [];
  if (cancelSetting !== false)
    return { record: await cancelRun(run, cancelSetting), ignored: ignoredEntries(resume, "cancel") };
  if (follow_up) return { record: await sendFollowUp(run), ignored: ignoredEntries(resume, "follow_up") };
  if (resume.length > 0) return resumeRun(run, resume);
  return { record: attach ? await findAttached(run) : await showOrDelegate(run), ignored: null };
}

const WHY_IGNORED: Record<IgnoredEntries["reason"], string> = {
  not_open: "These questions are not open in the delegation of this run",
  cancel: "This run only cancels",
  follow_up: "This run only sends a follow-up",
};

function ignoredEntries(
  entries: readonly ResumeEntry[],
  reason: IgnoredEntries["reason"],
): IgnoredEntries | null {
  if (entries.length === 0) return null;
  const message = `${WHY_IGNORED[reason]}, so these entries in resume changed nothing.`;
  return { reason, message, interrupt_ids: entries.map(({ interruptId }) => interruptId) };
}

const ignoredAsNotOpen = (entries: readonly ResumeEntry[]): IgnoredEntries | null =>
  ignoredEntries(entries, "not_open");

const showOrDelegate = async (run: Run): Promise<StoredDelegation> =>
  (await findDelegated(run)) ?? (await delegateTask(run));

async function cancelRun(
  run: Run,
  cancelSetting: Exclude<AgUiProps["cancel"], undefined>,
): Promise<StoredDelegation> {
  const { broker, principal } = run.request;
  const { id } = await findCanceled(run);
  const reason = typeof cancelSetting === "object" ? cancelSetting.reason : undefined;
  return cancel(broker, principal, id, { reason });
}

async function sendFollowUp(run: Run): Promise<StoredDelegation> {
  const { broker, principal } = run.request;
  const message = requireMessage(run.input);
  const found = await findFollowed(run, message);
  // The agent has it.
  if (isTask(message, found.get("message"))) return found;
  return followUp(broker, principal, found.id, { message: toMessage(message) });
}

async function resumeRun(run: Run, resume: readonly ResumeEntry[]): Promise<Started> {
  const interruptIds = resume.map(({ interruptId }) => interruptId);
  const found = await findForResume(run, interruptIds);
  if (!found) {
    // No entry answers anything, so this is a run like any other. Without a message, it only shows the thread.
    const attaches = propsOf(run).attach || !taskOf(run.input);
    const record = attaches ? await findAttached(run) : await showOrDelegate(run);
    return { record, ignored: ignoredAsNotOpen(resume) };
  }
  const open = openInterrupt(found);
  const entry = resume.find(({ interruptId }) => interruptId === open?.id);
  const others = ignoredAsNotOpen(resume.filter((one) => one !== entry));
  if (!open || !entry) return { record: found, ignored: others };
  return { record: await answerQuestion(run, found.id, open, entry), ignored: others };
}

/** Answers the question, or denies it. If it cannot be denied, cancels the delegation. */
async function answerQuestion(
  run: Run,
  id: string,
  open: Pick<Interrupt, "id" | "kind" | "requests">,
  { status, payload }: ResumeEntry,
): Promise<StoredDelegation> {
  const { broker, principal } = run.request;
  // All repeats of a run have its id.
  const call = { via: "ag-ui", key: `agui:${bodyHash([run.input.threadId, run.input.runId])}` } as const;
  if (status === "resolved") return answer(broker, principal, id, toAnswerRequest(open, payload), call);
  if (!open.requests.every((request) => offersDenial(open.kind, request)))
    return cancel(broker, principal, id, { reason: "the question was abandoned" });
  return answer(broker, principal, id, toDenial(open), call);
}

async function delegateTask({ request, agent, input }: Run): Promise<StoredDelegation> {
  const task = requireMessage(input);
  const { attach: _a, follow_up: _f, cancel: _c, delegation_id: _d, ...settings } = propsOf({ input });
  const message = toMessage(task);
  const metadata = forAgent(input);
  const body = {
    ...settings,
    target: agent,
    context_id: input.threadId,
    message: { ...message, ...(metadata && { metadata: { "ag-ui": metadata } }) },
  };
  const { record } = await delegate(request.broker, request.principal, checked(body), {
    traceparent: traceparentOf(request.header("traceparent")),
    idempotencyKey: keyOf(agent, input.threadId, task.id),
    // Settings and context may differ between two runs for one message.
    body: { target: agent, context_id: input.threadId, message },
    renews: true,
  });
  return record;
}

function checked(body: unknown): DelegateRequest {
  const { data, error } = readAs(delegateRequestSchema, body);
  if (error) throw invalidRequest(error, { whole: "The input", under: "forwardedProps.errand" });
  return data;
}

function requireMessage(input: RunAgentInput): UserMessage {
  const task = taskOf(input);
  const reason = !task
    ? "must contain a user message of the client's own: new work or a follow-up"
    : task.id === "" || task.id.length > 255
      ? "the id of the last user message must have 1 to 255 characters"
      : task.content.length === 0
        ? "the last user message is empty"
        : undefined;
  if (task && reason === undefined) return task;
  throw new ErrandError("invalid_request", `messages: ${reason}`, {
    details: { issues: [{ path: "messages", reason }] },
  });
}

const toMessage = ({ id, content }: UserMessage): MessageInput => ({
  messageId: id,
  role: "ROLE_USER",
  parts: toParts(content),
});

/** The application's context and state, for the agent; undefined if there are none. */
function forAgent({ context, state }: RunAgentInput): Record<string, unknown> | undefined {
  const own = Object.entries(typeof state === "object" && state !== null ? state : {});
  const shared = own.filter(([name]) => name !== "errand");
  const metadata = {
    ...(context && context.length > 0 && { context }),
    ...(shared.length > 0 && { state: Array.isArray(state) ? state : Object.fromEntries(shared) }),
  };
  return Object.keys(metadata).length === 0 ? undefined : metadata;
}
