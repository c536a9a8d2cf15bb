/**
 * What a message of an A2A client means: new work, the answer to an open question, or a follow-up, by its `taskId` and
 * where the task stands. Limit: one verb of the engine, never a second try at another: an answer that comes too late
 * is not taken for one to the next question.
 */

import { delegate } from "../../../engine/delegations/delegate.ts";
import { read } from "../../../engine/delegations/read.ts";
import { notFound } from "../../../engine/errors.ts";
import { createPush, toPush } from "../../../engine/outbound/push-notifications/configs.ts";
import { answer } from "../../../engine/questions/answer.ts";
import { message as followUp } from "../../../engine/questions/message.ts";
import type { StoredDelegation } from "../../../lifecycle/record.ts";
import { type MessageInput, messageInputSchema } from "../../../schema/a2a.ts";
import { delegateRequestSchema, interruptSchema } from "../../../schema/delegation.ts";
import { ErrandError } from "../../../schema/errors.ts";
import type { PushInput, PushVersion } from "../../../schema/push.ts";
import { contextIdSchema, delegationIdSchema } from "../../../schema/values.ts";

import { check } from "../../http/route.ts";
import { traceparentOf } from "../../http/trace.ts";
import type { Scope } from "../context.ts";
import { interruptNamed, toAnswerRequest } from "./answer-request.ts";

const openQuestion = interruptSchema.pick({ id: true, requests: true });

/** A task of this agent that the caller may see; any other does not exist. */
export async function readTask({ call, agent }: Scope, id: string): Promise<StoredDelegation> {
  if (!delegationIdSchema.safeParse(id).success) throw notFound(id);
  const record = await read(call.broker, call.principal, id);
  if (record.target !== agent) throw notFound(id);
  return record;
}

const PUSH_URL = "configuration.taskPushNotificationConfig.url";

export interface Sent {
  readonly message: unknown;
  readonly metadata: Record<string, unknown> | undefined;
  /** Where the task's events go, too. */
  readonly push?: { readonly input: PushInput; readonly version: PushVersion } | undefined;
}

/** Does what the message asks for; returns the task as it stands behind that. */
export async function send(scope: Scope, sent: Sent): Promise<StoredDelegation> {
  const { taskId, contextId, ...message } = check(messageInputSchema, sent.message, "message");
  if (taskId !== undefined && taskId !== "") return continued(scope, message, taskId, contextId, sent.push);
  if (contextId !== undefined && !contextIdSchema.safeParse(contextId).success) {
    throw new ErrandError("invalid_request", "message.contextId: this id can not be used here", {
      details: {
        issues: [
          { path: "message.contextId", reason: "1 to 128 of A-Z a-z 0-9 . _ : -, or none for a new one" },
        ],
      },
    });
  }
  return begun(scope, { ...message, ...(contextId !== undefined && { contextId }) }, sent);
}

async function begun(
  { call, agent }: Scope,
  message: MessageInput,
  { metadata, push }: Sent,
): Promise<StoredDelegation> {
  const body = { target: agent, message, ...(metadata && { metadata }) };
  const request = check(delegateRequestSchema, body, "params");
  const { record } = await delegate(call.broker, call.principal, request, {
    traceparent: traceparentOf(call.header("traceparent")),
    idempotencyKey: call.header("idempotency-key"),
    body: push ? { ...body, push: push.input } : body,
    push: push && toPush(call.broker, push.input, push.version, PUSH_URL),
  });
  return record;
}

async function continued(
  scope: Scope,
  message: MessageInput,
  taskId: string,
  contextId: string | undefined,
  push: Sent["push"],
): Promise<StoredDelegation> {
  const { broker, principal } = scope.call;
  const record = await readTask(scope, taskId);
  if (contextId !== undefined && contextId !== record.context_id) {
    throw new ErrandError("invalid_request", "message.contextId: not the context of this task", {
      details: { issues: [{ path: "message.contextId", reason: "leave it out, or send the task's own" }] },
    });
  }
  // Before the message, so that what follows from it is told.
  if (push && !record.finished)
    await createPush(broker, principal, taskId, push.input, push.version, PUSH_URL);
  const said = { ...message, contextId: record.context_id };
  const open = record.interrupt === null ? null : openQuestion.parse(JSON.parse(record.interrupt));
  const interrupt_id = interruptNamed(message) ?? open?.id;
  if (interrupt_id !== undefined) {
    const asked = open?.id === interrupt_id ? open.requests.map(({ request_id }) => request_id) : [];
    return answer(broker, principal, taskId, toAnswerRequest(said, interrupt_id, asked));
  }
  return followUp(broker, principal, taskId, { message: said });
}
