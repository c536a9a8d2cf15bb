/**
 * The start of a run, before its stream begins: it delegates, attaches, answers, follows up or cancels. Each is one verb
 * of the engine. An error becomes an HTTP status.
 */
import { cancel } from "../../engine/delegations/cancel.ts";
import { delegate } from "../../engine/delegations/delegate.ts";
import { openInterrupt } from "../../engine/delegations/parse.ts";
import { answer } from "../../engine/questions/answer.ts";
import { message as followUp } from "../../engine/questions/message.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import type { MessageInput } from "../../schema/a2a.ts";
import type { AgUiProps, ResumeEntry, RunAgentInput } from "../../schema/ag-ui-input.ts";
import { offersDenial } from "../../schema/answer-rules.ts";
import { type DelegateRequest, delegateRequestSchema } from "../../schema/delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import { invalidRequest } from "../../schema/issues.ts";
import { traceparentOf } from "../http/trace.ts";
import { toAnswerRequest } from "./answer.ts";
import { toParts } from "./content.ts";
import {
  findAsking,
  findCanceled,
  findFollowed,
  findKnown,
  findShown,
  isFoundByTask,
  propsOf,
  type Run,
} from "./find.ts";
import { keyOf, taskOf, type UserMessage } from "./ids.ts";

interface Started {
  readonly record: StoredDelegation;
  /** Ids of the resume entries whose questions are not open. Such entries change nothing. */
  readonly notOpen: readonly string[];
}

export interface Begun extends Started {
  /**
   * Whether the task is shown under its own message id, so that a client without messages has it as if it had sent it, and
   * a run with it finds this delegation.
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
  const { attach, follow_up, cancel: stop = false } = propsOf(run);
  const resume = run.input.resume ?? [];
  // A client library may demand an entry for every question that it knows, also in a run that answers none.
  const notOpen = resume.map(({ interruptId }) => interruptId);
  if (stop !== false) return { record: await cancelRun(run, stop), notOpen };
  if (follow_up) return { record: await sendFollowUp(run), notOpen };
  if (resume.length > 0) return resumeRun(run, resume);
  if (attach) return { record: await findShown(run), notOpen: [] };
  return { record: await showOrDelegate(run), notOpen: [] };
}

const showOrDelegate = async (run: Run): Promise<StoredDelegation> =>
  (await findKnown(run)) ?? (await delegateTask(run));

async function cancelRun(run: Run, stop: Exclude<AgUiProps["cancel"], undefined>): Promise<StoredDelegation> {
  const { broker, principal } = run.request;
  const { id } = await findCanceled(run);
  const reason = typeof stop === "object" ? stop.reason : undefined;
  return cancel(broker, principal, id, { reason, cascade: true });
}

async function sendFollowUp(run: Run): Promise<StoredDelegation> {
  const { broker, principal } = run.request;
  const task = requireTask(run.input);
  const { id } = await findFollowed(run, task.id);
  return followUp(broker, principal, id, { message: toMessage(task) });
}

async function resumeRun(run: Run, resume: readonly ResumeEntry[]): Promise<Started> {
  const found = await findAsking(
    run,
    resume.map(({ interruptId }) => interruptId),
  );
  if (!found) {
    // The entries answer nothing, so this is a run like any other; without a message it only shows the thread.
    const shows = propsOf(run).attach || !taskOf(run.input);
    const record = shows ? await findShown(run) : await showOrDelegate(run);
    return { record, notOpen: resume.map(({ interruptId }) => interruptId) };
  }
  const open = openInterrupt(found);
  const entry = resume.find(({ interruptId }) => interruptId === open?.id);
  const notOpen = resume.filter((one) => one !== entry).map(({ interruptId }) => interruptId);
  if (!open || !entry) return { record: found, notOpen };
  const { broker, principal } = run.request;
  if (entry.status === "resolved") {
    const record = await answer(broker, principal, found.id, toAnswerRequest(open, entry.payload));
    return { record, notOpen };
  }
  if (!open.requests.every((request) => offersDenial(open.kind, request))) {
    const reason = "the question was abandoned";
    return { record: await cancel(broker, principal, found.id, { reason, cascade: true }), notOpen };
  }
  const denials = open.requests.map(({ request_id }) => [request_id, { decision: "deny" as const }] as const);
  const denied =
    denials.length === 1 ? { decision: "deny" as const } : { answers: Object.fromEntries(denials) };
  const record = await answer(broker, principal, found.id, { interrupt_id: open.id, ...denied });
  return { record, notOpen };
}

async function delegateTask({ request, agent, input }: Run): Promise<StoredDelegation> {
  const task = requireTask(input);
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
  const { data, error } = delegateRequestSchema.safeParse(body);
  if (error) throw invalidRequest(error, { whole: "The input", under: "forwardedProps.errand" });
  return data;
}

function requireTask(input: RunAgentInput): UserMessage {
  const task = taskOf(input);
  const reason = !task
    ? "must contain a user message: the work to delegate"
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
