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
  bulkRefusedSchema,
  bulkRequestSchema,
  messageRequestSchema,
} from "../../schema/interrupt.ts";
import { delegationIdSchema, instantSchema } from "../../schema/values.ts";
import { publicPath } from "../http/links.ts";
import { type Route, route } from "../http/route.ts";
import { jsonText } from "../http/text-response.ts";

const params = z.strictObject({ id: delegationIdSchema });
const bulkSchema = z.strictObject({
  delegations: z.array(delegationSchema),
  refused: z.array(bulkRefusedSchema),
  next_before: instantSchema.nullable(),
});

function bulkText({ records, ...rest }: Bulk): string {
  const delegations = records.map(({ json }) => json).join(",");
  return `{"delegations":[${delegations}],${JSON.stringify(rest).slice(1)}`;
}

export const delegationActionRoutes: readonly Route[] = [
  route({
    method: "POST",
    path: "/v1/delegations/{id}/cancel",
    summary: "Cancel a delegation and everything delegated under it; its worker is notified at once.",
    params,
    body: cancelRequestSchema,
    responses: { 200: delegationSchema },
    async handle(request, { params: { id }, body }) {
      return jsonText(200, (await cancel(request.broker, request.principal, id, body)).json);
    },
  }),
  route({
    method: "POST",
    path: "/v1/delegations/{id}/answer",
    summary: "Answer a delegation's open question; the delegation returns to its agent ahead of new work.",
    params,
    body: answerRequestSchema,
    notes: { requestHeaders: ["Idempotency-Key"] },
    responses: { 200: delegationSchema },
    async handle(request, { params: { id }, body }) {
      const key = request.idempotencyKey;
      return jsonText(200, (await answer(request.broker, request.principal, id, body, key)).json);
    },
  }),
  route({
    method: "POST",
    path: "/v1/delegations/{id}/messages",
    summary: "Send a follow-up message; the worker gets it with its next heartbeat.",
    params,
    body: messageRequestSchema,
    responses: { 202: delegationSchema },
    async handle(request, { params: { id }, body }) {
      return jsonText(202, (await message(request.broker, request.principal, id, body)).json);
    },
  }),
  route({
    method: "POST",
    path: "/v1/delegations/{id}/redrive",
    summary: "Delegate failed work again; a repeated request returns the same new delegation.",
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
    method: "POST",
    path: "/v1/delegations/redrive",
    summary: "Redrive the failed delegations of an agent, newest first; continue with next_before.",
    body: bulkRequestSchema,
    responses: { 202: bulkSchema },
    async handle(request, { body }) {
      return jsonText(202, bulkText(await redriveMany(request.broker, request.principal, body)));
    },
  }),
  route({
    method: "POST",
    path: "/v1/delegations/cancel",
    summary: "Cancel the live delegations of an agent, newest first; continue with next_before.",
    body: bulkRequestSchema.omit({ error_code: true }),
    responses: { 200: bulkSchema },
    async handle(request, { body }) {
      return jsonText(200, bulkText(await cancelMany(request.broker, request.principal, body)));
    },
  }),
];
