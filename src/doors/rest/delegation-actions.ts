/**
 * Requests about existing delegations: cancel, answer, message, redrive, and cancel and redrive in bulk. The engine
 * checks the caller's permission.
 */

import * as z from "zod";
import { type Bulk, cancelMany, redriveMany } from "../../engine/delegations/bulk.ts";
import { cancel } from "../../engine/delegations/cancel.ts";
import { redrive } from "../../engine/delegations/redrive.ts";
import { answer } from "../../engine/questions/answer.ts";
import { message } from "../../engine/questions/message.ts";
import { cancelRequestSchema, delegationSchema } from "../../schema/delegation.ts";
import {
  answerRequestSchema,
  bulkCancelRequestSchema,
  bulkRequestSchema,
  bulkResultSchema,
  messageRequestSchema,
} from "../../schema/interrupt.ts";
import { delegationIdSchema } from "../../schema/values.ts";
import { publicPath } from "../http/links.ts";
import { type Route, route } from "../http/route.ts";
import { jsonText } from "../http/text-response.ts";

const params = z.strictObject({
  /** The delegation. */
  id: delegationIdSchema,
});

function bulkText({ records, ...rest }: Bulk): string {
  const delegations = records.map(({ json }) => json).join(",");
  return `{"delegations":[${delegations}],${JSON.stringify(rest).slice(1)}`;
}

export const delegationActionRoutes: readonly Route[] = [
  route({
    id: "cancelDelegation",
    method: "POST",
    path: "/v1/delegations/{id}/cancel",
    summary: "Cancel a delegation",
    description:
      "Cancels the delegation and everything delegated under it; its worker is notified at once. A repeated cancel succeeds; after any other end it is refused with `already_finished`.",
    params,
    body: cancelRequestSchema,
    responses: { 200: delegationSchema },
    async handle(request, { params: { id }, body }) {
      return jsonText(200, (await cancel(request.broker, request.principal, id, body)).json);
    },
  }),
  route({
    id: "answerQuestion",
    method: "POST",
    path: "/v1/delegations/{id}/answer",
    summary: "Answer a delegation's open question",
    description:
      "The delegation then returns to its agent, before new work. The delegator, approvers and the operator may answer; the first answer counts. The repeat of an answer that succeeded succeeds.",
    params,
    body: answerRequestSchema,
    notes: { requestHeaders: ["Idempotency-Key"] },
    responses: { 200: delegationSchema },
    async handle(request, { params: { id }, body }) {
      const via = request.identity.session_id === null ? "rest" : "console";
      const call = { via, key: request.idempotencyKey } as const;
      return jsonText(200, (await answer(request.broker, request.principal, id, body, call)).json);
    },
  }),
  route({
    id: "sendMessage",
    method: "POST",
    path: "/v1/delegations/{id}/messages",
    summary: "Send a follow-up message to the agent",
    description:
      "The worker gets it with its next heartbeat. Refused with `wrong_state` while a question is open, and with `already_finished` after the end.",
    params,
    body: messageRequestSchema,
    responses: { 202: delegationSchema },
    async handle(request, { params: { id }, body }) {
      return jsonText(202, (await message(request.broker, request.principal, id, body)).json);
    },
  }),
  route({
    id: "redriveDelegation",
    method: "POST",
    path: "/v1/delegations/{id}/redrive",
    summary: "Delegate failed work again",
    description:
      "Creates a new delegation with the same work. A repeated request returns the same new delegation. Refused with `wrong_state` unless the delegation has failed.",
    params,
    responses: { 202: delegationSchema },
    notes: { responseHeaders: ["Location"] },
    async handle(request, { params: { id } }) {
      const record = await redrive(request.broker, request.principal, id);
      return jsonText(202, record.json, {
        location: publicPath(request.broker.publicUrl(), `/v1/delegations/${record.id}`),
      });
    },
  }),
  route({
    id: "redriveMany",
    method: "POST",
    path: "/v1/delegations/redrive",
    summary: "Redrive an agent's failed delegations",
    description:
      "Redrives the failed delegations of an agent, newest first, one page for each request: continue with `next_before` as `before`. For the operator.",
    body: bulkRequestSchema,
    responses: { 202: bulkResultSchema },
    async handle(request, { body }) {
      return jsonText(202, bulkText(await redriveMany(request.broker, request.principal, body)));
    },
  }),
  route({
    id: "cancelMany",
    method: "POST",
    path: "/v1/delegations/cancel",
    summary: "Cancel an agent's live delegations",
    description:
      "Cancels the live delegations of an agent, newest first, one page for each request: continue with `next_before` as `before`. For the operator.",
    body: bulkCancelRequestSchema,
    responses: { 200: bulkResultSchema },
    async handle(request, { body }) {
      return jsonText(200, bulkText(await cancelMany(request.broker, request.principal, body)));
    },
  }),
];
