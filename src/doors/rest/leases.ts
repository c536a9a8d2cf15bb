/** The worker's side: lease, heartbeat, artifact, question, release, reply. Limit: the broker never calls a worker. */
import * as z from "zod";
import { inBackground } from "../../engine/after-move.ts";
import { read } from "../../engine/delegations/read.ts";
import { addArtifact } from "../../engine/leases/artifacts.ts";
import { heartbeat } from "../../engine/leases/heartbeat.ts";
import { type GrantedLease, lease, returnLeases } from "../../engine/leases/lease.ts";
import { release } from "../../engine/leases/release.ts";
import { reply } from "../../engine/leases/reply.ts";
import { ask } from "../../engine/questions/ask.ts";
import { use } from "../../engine/questions/use.ts";
import { delegationSchema } from "../../schema/delegation.ts";
import {
  interruptRequestSchema,
  interruptResultSchema,
  useRequestSchema,
  useResultSchema,
} from "../../schema/interrupt.ts";
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
import { ownText } from "../../util/text.ts";
import type { AuthenticatedRequest } from "../http/authenticated-request.ts";
import type { RequestScope } from "../http/request-scope.ts";
import { type Route, route } from "../http/route.ts";
import { json, jsonText } from "../http/text-response.ts";

const params = z.strictObject({ lease_id: leaseIdSchema });

/** If the response is not delivered, the leases are released at once, without spending an attempt. */
function deliver(request: AuthenticatedRequest, leases: readonly GrantedLease[]): string {
  if (leases.length > 0) {
    request.onUndelivered(() => {
      request.broker.log.info(
        { request_id: request.requestId, leases: leases.length },
        "the response was not delivered; its leases are released",
      );
      void inBackground(request.broker, returnLeases(request.broker, leases));
    });
  }
  return `[${leases.map((one) => one.json).join(",")}]`;
}

export const leaseRoutes: readonly Route[] = [
  route({
    method: "POST",
    path: "/v1/agents/{agent}/leases",
    summary: "Lease work; if there is none, wait for it, up to `wait_seconds`.",
    params: z.strictObject({ agent: agentNameSchema }),
    body: leaseRequestSchema,
    responses: { 200: leasesSchema },
    // Not async: a parked poll would retain the frame and its input.
    handle: (request, { params: { agent }, body }) =>
      request
        .withScope(body.wait_seconds, (scope) => lease(request.broker, request.principal, agent, body, scope))
        .then((leases) => jsonText(200, `{"leases":${deliver(request, leases)}}`)),
  }),
  route({
    method: "POST",
    path: "/v1/leases/{lease_id}/heartbeat",
    summary:
      "Extend the lease and report progress; with `wait_seconds`, wait for a follow-up or a change of the lease.",
    params,
    body: heartbeatRequestSchema,
    responses: { 200: heartbeatSchema },
    async handle(request, { params: { lease_id }, body }) {
      const { broker, principal } = request;
      const beat = (scope: RequestScope) => heartbeat(broker, principal, lease_id, body, scope);
      // A refused one is repeated without a wait, which no quota refuses.
      return json(200, await request.withScope(body.wait_seconds, beat));
    },
  }),
  route({
    method: "POST",
    path: "/v1/leases/{lease_id}/artifacts",
    summary: "Add output before the reply; it is streamed to subscribers and stored.",
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
    summary:
      "Ask a question; the lease ends, and the answer returns the delegation to the agent ahead of new work. With `hold`, the lease stays, and the answer goes to its holder.",
    params,
    body: interruptRequestSchema,
    responses: { 200: interruptResultSchema },
    async handle(request, { params: { lease_id }, body }) {
      return json(200, await ask(request.broker, request.principal, lease_id, body));
    },
  }),
  route({
    method: "POST",
    path: "/v1/leases/{lease_id}/use",
    summary: "Take an answer for one use: only this call gets it, however often it is repeated.",
    params,
    body: useRequestSchema,
    responses: { 200: useResultSchema },
    async handle(request, { params: { lease_id }, body }) {
      return json(200, await use(request.broker, request.principal, lease_id, body));
    },
  }),
  route({
    method: "POST",
    path: "/v1/leases/{lease_id}/release",
    summary:
      "Return the delegation to its queue without spending an attempt; while its question is held, end only the lease.",
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
    summary: "Finish the delegation; with `next`, get the next lease in the same response.",
    params,
    body: replyRequestSchema,
    responses: { 200: replySchema },
    async handle(request, { params: { lease_id }, body }) {
      const { broker, principal } = request;
      return request.withScope(body.next?.wait_seconds ?? 0, async (scope) => {
        const { outcome, record } = await reply(broker, principal, lease_id, body);
        const head = `{"outcome":"${outcome}","delegation":${record.json}`;
        if (body.next === undefined) return jsonText(200, `${head}}`);
        // The poll is kept by the agent's name.
        const agent = ownText(record.get("target"));
        const leases = await lease(broker, principal, agent, body.next, scope);
        return jsonText(200, `${head},"leases":${deliver(request, leases)}}`);
      });
    },
  }),
];
