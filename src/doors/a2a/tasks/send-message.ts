/**
 * SendMessage: the `taskId` and the task's state decide whether a message is new work, the answer to an open question, or
 * a follow-up. If that fails, it is not tried as one of the others: a late answer must not answer the next question.
 */
import type { SendMessageRequest } from "@a2a-js/sdk";
import { delegate } from "../../../engine/delegations/delegate.ts";
import { bodyHash } from "../../../engine/delegations/idempotency.ts";
import { openInterrupt } from "../../../engine/delegations/parse.ts";
import { read } from "../../../engine/delegations/read.ts";
import { notFound, wrongState } from "../../../engine/errors.ts";
import { createPushConfig, pushConfigMaker } from "../../../engine/outbound/push-notifications/configs.ts";
import { answer } from "../../../engine/questions/answer.ts";
import { message as followUp } from "../../../engine/questions/message.ts";
import type { StoredDelegation } from "../../../lifecycle/stored-delegation.ts";
import { type Message, type MessageInput, messageInputSchema } from "../../../schema/a2a.ts";
import type { Delegation } from "../../../schema/delegation.ts";
import { ErrandError } from "../../../schema/errors.ts";
import type { PushConfigInput, PushVersion } from "../../../schema/push-config.ts";
import { CONTEXT_ID_RULE, contextIdSchema, delegationIdSchema } from "../../../schema/values.ts";
import { check } from "../../http/route.ts";
import { traceparentOf } from "../../http/trace.ts";
import type { A2AContext } from "../context.ts";
import { namedInterrupt, toAnswerRequest } from "./answer-request.ts";
import { toDelegateRequest } from "./settings.ts";
import { inTask, statusSourceOf } from "./task.ts";

/** Reads a task of this agent that the caller may see; any other counts as not found. */
export async function readTask({ request, agent }: A2AContext, id: string): Promise<StoredDelegation> {
  if (!delegationIdSchema.safeParse(id).success) throw notFound(id);
  const record = await read(request.broker, request.principal, id);
  if (record.get("target") !== agent) throw notFound(id);
  return record;
}

const PUSH_URL = "configuration.taskPushNotificationConfig.url";

export interface IncomingMessage {
  readonly message: unknown;
  readonly metadata: Record<string, unknown> | undefined;
  /** The push notification config of the request. */
  readonly push?: { readonly input: PushConfigInput; readonly version: PushVersion } | undefined;
}

/** Returns the task as it is after the message. */
export async function sendMessage(context: A2AContext, incoming: IncomingMessage): Promise<StoredDelegation> {
  const { taskId, contextId, ...message } = check(messageInputSchema, incoming.message, "message");
  if (taskId !== undefined && taskId !== "")
    return continueTask(context, message, taskId, contextId, incoming.push);
  if (contextId !== undefined && !contextIdSchema.safeParse(contextId).success) {
    throw new ErrandError("invalid_request", "message.contextId is not a valid context id.", {
      details: {
        issues: [
          {
            path: "message.contextId",
            reason: `send ${CONTEXT_ID_RULE}, or omit it for a new context`,
          },
        ],
      },
    });
  }
  return startTask(context, { ...message, ...(contextId !== undefined && { contextId }) }, incoming);
}

async function startTask(
  { request, agent }: A2AContext,
  message: MessageInput,
  { metadata, push }: IncomingMessage,
): Promise<StoredDelegation> {
  const { delegateRequest, body } = toDelegateRequest(agent, message, metadata);
  const { record } = await delegate(request.broker, request.principal, delegateRequest, {
    traceparent: traceparentOf(request.header("traceparent")),
    idempotencyKey: request.idempotencyKey,
    body: push ? { ...body, push: push.input } : body,
    push: push && pushConfigMaker(request.broker, push.input, push.version, PUSH_URL),
  });
  return record;
}

async function continueTask(
  context: A2AContext,
  message: MessageInput,
  taskId: string,
  contextId: string | undefined,
  push: IncomingMessage["push"],
): Promise<StoredDelegation> {
  const { broker, principal } = context.request;
  const record = await readTask(context, taskId);
  if (contextId !== undefined && contextId !== record.get("context_id")) {
    throw new ErrandError("invalid_request", "message.contextId is not the context of this task.", {
      details: { issues: [{ path: "message.contextId", reason: "omit it, or send the task's own" }] },
    });
  }
  // Created before the message is sent, so that the receiver is notified of its effect.
  if (push && !record.finished)
    await createPushConfig(broker, principal, taskId, push.input, push.version, PUSH_URL);
  const inContext = { ...message, contextId: record.get("context_id") };
  const open = openInterrupt(record);
  const interrupt_id = namedInterrupt(message) ?? open?.id;
  if (interrupt_id !== undefined) {
    const openRequests = open?.id === interrupt_id ? open.requests.map(({ request_id }) => request_id) : [];
    const request = toAnswerRequest(inContext, interrupt_id, openRequests);
    // All repeats of a message have its id.
    const key = context.request.idempotencyKey ?? `a2a:${bodyHash(message.messageId)}`;
    return answer(broker, principal, taskId, request, { via: "a2a", key });
  }
  // A2A refuses every message to a finished task, also one that the task has already.
  if (record.finished) throw wrongState(taskId, record.get("state"));
  return followUp(broker, principal, taskId, { message: inContext });
}

/** Whether a Message may answer: the caller waits, starts the task, and no push notification shows it the task. */
export function mayAnswerWithMessage({ message, configuration }: SendMessageRequest): boolean {
  const { returnImmediately = false, taskPushNotificationConfig } = configuration ?? {};
  return !returnImmediately && !taskPushNotificationConfig && (message?.taskId ?? "") === "";
}

/**
 * The answer to a send as a Message instead of a Task, to a caller that has not seen the task yet. Null unless the agent
 * answered with a bare Message. A2A has no Message without parts: that is shown as a Task. Limit: the task exists all the
 * same, and GetTask shows it.
 */
export function toMessageAnswer(record: StoredDelegation, delegation: Delegation): Message | null {
  const { state, reply } = delegation;
  if (record.get("a2a_form") !== "message" || state !== "completed" || !reply || reply.parts.length === 0)
    return null;
  return inTask(reply, statusSourceOf(delegation));
}
