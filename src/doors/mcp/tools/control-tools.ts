/** Tools that answer, message and cancel delegations. */
import * as z from "zod";
import { cancel } from "../../../engine/delegations/cancel.ts";
import { answer } from "../../../engine/questions/answer.ts";
import { message } from "../../../engine/questions/message.ts";
import { decisionSchema } from "../../../schema/decision.ts";
import { type AnswerRequest, answerRequestSchema, answerSchema } from "../../../schema/interrupt.ts";
import { check } from "../../http/route.ts";
import type { McpContext } from "../context.ts";
import { withParsedData } from "./answer-data.ts";
import { delegationIdInput, delegationViewShape, showChanged } from "./delegation-view.ts";
import { defineTool, type Tool } from "./tool.ts";
import { CONTROLLERS } from "./visibility.ts";

const interrupt_id = z
  .string()
  .min(1)
  .max(255)
  .describe("The question's interrupt_id, as shown by check_task_status.");

const idempotency_key = z
  .string()
  .min(1)
  .max(255)
  .optional()
  .describe("Any text. A repeated call with the same key is the same answer.");

export const controlTools: readonly Tool[] = [
  defineTool({
    name: "answer_task",
    title: "Answer a question",
    description:
      "Answer a delegation's open question (state input_required or auth_required). An answer that does not fit is refused: if there are options, give one of them (approve and deny as decision, a text as text); if there is a schema, give data that fits it; if there is an action, give a decision. The agent continues with the answer; call check_task_status with wait_seconds for the result. If there are several requests, pass answers for all of them at once, by request_id. Do not invent answers that only the user can give: ask the user.",
    visibleTo: CONTROLLERS,
    idempotent: true,
    input: {
      delegation_id: delegationIdInput,
      interrupt_id,
      text: z.string().min(1).optional(),
      decision: decisionSchema.optional(),
      data: z
        .unknown()
        .optional()
        .describe(
          "JSON: what the question's schema asks for, an option that is not a text, or, with decision approve and if the question has edit: true, arguments that replace those of its action.",
        ),
      answers: z
        .record(z.string(), answerSchema)
        .optional()
        .describe("Answers by request_id, each {text?, decision?, data?}."),
      idempotency_key,
    },
    output: delegationViewShape,
    async handle(context, { delegation_id: id, idempotency_key: key, ...input }) {
      const sent = check(answerRequestSchema, input, "arguments");
      const request = await withParsedData(context, id, sent);
      return showChanged(await answerOnce(context, id, request, key));
    },
  }),
  defineTool({
    name: "approve_or_deny",
    title: "Approve or deny",
    description:
      "Approve or deny a delegation's open question, with an optional reason. Approve only what the user wants; if you do not know, ask the user first.",
    visibleTo: CONTROLLERS,
    idempotent: true,
    input: {
      delegation_id: delegationIdInput,
      interrupt_id,
      decision: decisionSchema,
      text: z.string().min(1).optional(),
      idempotency_key,
    },
    output: delegationViewShape,
    async handle(context, { delegation_id: id, idempotency_key: key, ...request }) {
      return showChanged(await answerOnce(context, id, request, key));
    },
  }),
  defineTool({
    name: "send_follow_up",
    title: "Send a follow-up",
    description:
      "Send a message to queued or running work: a correction or an addition. The agent receives it with its next progress report. To answer a question, use answer_task. If the delegation is finished, delegate a new task.",
    visibleTo: CONTROLLERS,
    input: { delegation_id: delegationIdInput, text: z.string().min(1) },
    output: delegationViewShape,
    async handle({ broker, principal }, { delegation_id: id, text }) {
      return showChanged(await message(broker, principal, id, { text }));
    },
  }),
  defineTool({
    name: "cancel_task",
    title: "Cancel a delegation",
    description:
      "Cancel a delegation and its children (unless it keeps them, or cascade is false). The agent is notified at once. A finished delegation does not change.",
    visibleTo: CONTROLLERS,
    destructive: true,
    idempotent: true,
    input: {
      delegation_id: delegationIdInput,
      reason: z.string().max(1024).optional(),
      cascade: z.boolean().optional(),
    },
    output: delegationViewShape,
    async handle({ broker, principal }, { delegation_id: id, ...options }) {
      return showChanged(await cancel(broker, principal, id, options));
    },
  }),
];

/** Without a key of its own, the call is recognized by its session and id, and never by what it answers. */
const answerOnce = (
  context: McpContext,
  id: string,
  request: AnswerRequest,
  key = context.idempotencyKeyFor(request.interrupt_id),
) => answer(context.broker, context.principal, id, request, { via: "mcp", key });
