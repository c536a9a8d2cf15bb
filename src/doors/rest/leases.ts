/** The agent's side: lease, heartbeat, release, reply. Limit: outbound HTTP only; nothing calls an agent. */
import { z } from "zod";
import { inBackground } from "../../engine/after-move.ts";
import { read } from "../../engine/delegations/read.ts";
import { addArtifact, heartbeat, release } from "../../engine/leases/heartbeat.ts";
import { type GrantedLease, handBack, lease } from "../../engine/leases/lease.ts";
import { reply } from "../../engine/leases/reply.ts";
import { ask } from "../../engine/questions/ask.ts";
import { delegationSchema } from "../../schema/delegation.ts";
import { interruptRequestSchema, raisedSchema } from "../../schema/interrupt.ts";
import {
  artifactAnswerSchema,
  artifactRequestSchema,
  heartbeatRequestSchema,
  heartbeatSchema,
  leaseRequestSchema,
  leasesSchema,
  releaseRequestSchema,
  replyRequestSchema,
  replySchema,
} from "../../schema/lease.ts";
import { agentNameSchema, leaseIdSchema } from "../../schema/values.ts";
import type { AuthenticatedRequest } from "../http/authenticated-request.ts";
import type { RequestScope } from "../http/request-scope.ts";
import { type Route, route } from "../http/route.ts";
import { json, jsonText } from "../http/text-response.ts";

const params = z.strictObject({ lease_id: leaseIdSchema });

/** A lease goes only to a connection that takes it; otherwise it goes back at once, no attempt spent. */
function deliver(request: AuthenticatedRequest, leases: readonly GrantedLease[]): string {
  if (leases.length > 0) {
    request.onLost(() => {
      request.broker.log.info(
        { request_id: request.requestId, leases: leases.length },
        "reader gone; handed back",
      );
      void inBackground(request.broker, handBack(request.broker, leases));
    });
  }
  return `[${leases.map((one) => one.json).join(",")}]`;
}

export const leaseRoutes: readonly Route[] = [
  route({
    method: "POST",
    path: "/v1/agents/{agent}/leases",
    summary: "Ask for work; the answer waits until there is some.",
    params: z.strictObject({ agent: agentNameSchema }),
    body: leaseRequestSchema,
    responses: { 200: leasesSchema },
    // Not async: a parked poll would keep the frame, and the input in it.
    handle: (request, { params: { agent }, body }) =>
      request
        .withScope(body.wait_seconds, (scope) => lease(request.broker, request.principal, agent, body, scope))
        .then((leases) => jsonText(200, `{"leases":${deliver(request, leases)}}`)),
  }),
  route({
    method: "POST",
    path: "/v1/leases/{lease_id}/heartbeat",
    summary: "Stay the holder, say how far it is; held, it answers when there is something to say.",
    params,
    body: heartbeatRequestSchema,
    responses: { 200: heartbeatSchema },
    async handle(request, { params: { lease_id }, body }) {
      const { broker, principal } = request;
      const beat = (scope: RequestScope) => heartbeat(broker, principal, lease_id, body, scope);
      // No poll: leases bound it, and a heartbeat that were refused would cost its lease.
      return json(200, await request.withScope(body.wait_seconds, beat, null));
    },
  }),
  route({
    method: "POST",
    path: "/v1/leases/{lease_id}/artifacts",
    summary: "Send a piece of output before the reply; it is streamed and kept.",
    params,
    body: artifactRequestSchema,
    responses: { 200: artifactAnswerSchema },
    async handle(request, { params: { lease_id }, body }) {
      return json(200, await addArtifact(request.broker, request.principal, lease_id, body));
    },
  }),
  route({
    method: "POST",
    path: "/v1/leases/{lease_id}/interrupt",
    summary: "Ask; the lease ends, and the answer puts the delegation back before new work.",
    params,
    body: interruptRequestSchema,
    responses: { 200: raisedSchema },
    async handle(request, { params: { lease_id }, body }) {
      return json(200, await ask(request.broker, request.principal, lease_id, body));
    },
  }),
  route({
    method: "POST",
    path: "/v1/leases/{lease_id}/release",
    summary: "Give it back without spending an attempt.",
    params,
    body: releaseRequestSchema,
    responses: { 200: z.strictObject({ delegation: delegationSchema }) },
    async handle(request, { params: { lease_id }, body }) {
      const id = await release(request.broker, request.principal, lease_id, body);
      return jsonText(200, `{"delegation":${(await read(request.broker, request.principal, id)).json}}`);
    },
  }),
  route({
    method: "POST",
    path: "/v1/leases/{lease_id}/reply",
    summary: "Close the delegation; with `next`, get the next lease in the same round trip.",
    params,
    body: replyRequestSchema,
    responses: { 200: replySchema },
    async handle(request, { params: { lease_id }, body }) {
      const { broker, principal } = request;
      return request.withScope(body.next?.wait_seconds ?? 0, async (scope) => {
        const { outcome, record } = await reply(broker, principal, lease_id, body);
        const head = `{"outcome":"${outcome}","delegation":${record.json}`;
        if (body.next === undefined) return jsonText(200, `${head}}`);
        const leases = await lease(broker, principal, record.target, body.next, scope);
        return jsonText(200, `${head},"leases":${deliver(request, leases)}}`);
      });
    },
  }),
];
