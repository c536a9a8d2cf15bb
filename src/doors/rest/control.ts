/**
 * What is said to a delegation after it was made: cancel, answer, message, redrive, and the two of them in bulk.
 * Limit: who may is the engine's to say.
 */
import { z } from "zod";
import { cancel } from "../../engine/delegations/cancel.ts";
import { type Bulk, cancelMany, redrive, redriveMany } from "../../engine/delegations/redrive.ts";
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

export const controlRoutes: readonly Route[] = [
  route({
    method: "POST",
    path: "/v1/delegations/{id}/cancel",
    summary: "Cancel it, and with it what was delegated under it; the holder of its lease learns at once.",
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
    summary: "Answer its open question; it goes back to its agent before new work.",
    params,
    body: answerRequestSchema,
    responses: { 200: delegationSchema },
    async handle(request, { params: { id }, body }) {
      return jsonText(200, (await answer(request.broker, request.principal, id, body)).json);
    },
  }),
  route({
    method: "POST",
    path: "/v1/delegations/{id}/messages",
    summary: "Send a follow-up; the holder of its lease gets it with its next heartbeat.",
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
    summary: "Delegate anew what failed; asked again, the answer is the same new delegation.",
    params,
    responses: { 202: delegationSchema },
    notes: { gives: ["Location"] },
    async handle(request, { params: { id } }) {
      const record = await redrive(request.broker, request.principal, id);
      return jsonText(202, record.json, { location: `/v1/delegations/${record.id}` });
    },
  }),
  route({
    method: "POST",
    path: "/v1/delegations/redrive",
    summary: "Redrive what failed of an agent, newest first; go on with next_before.",
    body: bulkRequestSchema,
    responses: { 202: bulkSchema },
    async handle(request, { body }) {
      return jsonText(202, bulkText(await redriveMany(request.broker, request.principal, body)));
    },
  }),
  route({
    method: "POST",
    path: "/v1/delegations/cancel",
    summary: "Cancel what is live of an agent, newest first; go on with next_before.",
    body: bulkRequestSchema.omit({ error_code: true }),
    responses: { 200: bulkSchema },
    async handle(request, { body }) {
      return jsonText(200, bulkText(await cancelMany(request.broker, request.principal, body)));
    },
  }),
];
