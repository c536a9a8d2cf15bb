/** The worker's side: lease, heartbeat, artifact, question, release, reply. Limit: the broker never calls a worker. */
import * as z from "zod";
import { inBackground } from "../../engine/after-move.ts";
import { read } from "../../engine/delegations/read.ts";
import { addArtifact } from "../../engine/leases/artifacts.ts";
import { awaitChildren } from "../../engine/leases/await-children.ts";
import { heartbeat } from "../../engine/leases/heartbeat.ts";
import { type GrantedLease, lease, returnLeases } from "../../engine/leases/lease.ts";
import { release } from "../../engine/leases/release.ts";
import { reply } from "../../engine/leases/reply.ts";
import { ask } from "../../engine/questions/ask.ts";
import { use } from "../../engine/questions/use.ts";
import { awaitRequestSchema, awaitResultSchema } from "../../schema/await.ts";
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
  releasedSchema,
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

const params = z.strictObject({
  /** The lease. */
  lease_id: leaseIdSchema,
});

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
    id: "leaseWork",
    method: "POST",
    path: "/v1/agents/{agent}/leases",
    summary: "Lease work for an agent's worker",
    description:
      "Answers leases as soon as there is work, or an empty list after `wait_seconds`. Extend a lease by heartbeats, and end it by a reply, a question or a release.",
    params: z.strictObject({
      /** The agent's name. */
      agent: agentNameSchema,
    }),
    body: leaseRequestSchema,
    responses: { 200: leasesSchema },
    // Not async: a parked poll would retain the frame and its input.
    handle: (request, { params: { agent }, body }) =>
      request
        .withScope(body.wait_seconds, (scope) => lease(request.broker, request.principal, agent, body, scope))
        .then((leases) => jsonText(200, `{"leases":${deliver(request, leases)}}`)),
  }),
  route({
    id: "heartbeat",
    method: "POST",
    path: "/v1/leases/{lease_id}/heartbeat",
    summary: "Extend a lease and report progress",
    description:
      "Also answers the delegator's follow-up messages. With `wait_seconds`, waits for a follow-up or a change of the lease, at most half the time of the lease. 409 `lease_lost`: stop the work, the lease is over.",
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
    id: "sendArtifact",
    method: "POST",
    path: "/v1/leases/{lease_id}/artifacts",
    summary: "Send output before the reply",
    description:
      "Stores an artifact, or a chunk of one, with the delegation, and streams it to its readers. Extends the lease.",
    params,
    body: artifactRequestSchema,
    responses: { 200: artifactAnswerSchema },
    async handle(request, { params: { lease_id }, body }) {
      return json(200, await addArtifact(request.broker, request.principal, lease_id, body));
    },
  }),
  route({
    id: "askQuestion",
    method: "POST",
    path: "/v1/leases/{lease_id}/interrupt",
    summary: "Ask a question about the work",
    description:
      "Ends the lease; the answer returns the delegation to the agent, before new work. With `hold` the lease stays, and its holder gets the answer. A question that was already answered is answered at once.",
    params,
    body: interruptRequestSchema,
    responses: { 200: interruptResultSchema },
    async handle(request, { params: { lease_id }, body }) {
      return json(200, await ask(request.broker, request.principal, lease_id, body));
    },
  }),
  route({
    id: "awaitChildren",
    method: "POST",
    path: "/v1/leases/{lease_id}/await",
    summary: "Wait for children of the work",
    description:
      "Ends the lease, which costs no attempt. When enough of the children have ended, or the time is over, the delegation returns to the agent before new work, with the children in `awaited` of the lease. If enough had ended before, they are in the answer, and the lease goes on.",
    params,
    body: awaitRequestSchema,
    responses: { 200: awaitResultSchema },
    async handle(request, { params: { lease_id }, body }) {
      const { awaits, awaited } = await awaitChildren(request.broker, request.principal, lease_id, body);
      return awaited === undefined ? json(200, { awaits }) : jsonText(200, `{"awaited":${awaited}}`);
    },
  }),
  route({
    id: "useAnswer",
    method: "POST",
    path: "/v1/leases/{lease_id}/use",
    summary: "Take an answer for one use",
    description:
      "Gives the answer to one call only, for an action that must not happen twice. A repeat with the same `use_key` gets it again.",
    params,
    body: useRequestSchema,
    responses: { 200: useResultSchema },
    async handle(request, { params: { lease_id }, body }) {
      return json(200, await use(request.broker, request.principal, lease_id, body));
    },
  }),
  route({
    id: "releaseLease",
    method: "POST",
    path: "/v1/leases/{lease_id}/release",
    summary: "Return work unfinished",
    description:
      "Ends the lease and returns the delegation to its queue; no attempt is spent. While its question is held, only the lease ends.",
    params,
    body: releaseRequestSchema,
    responses: { 200: releasedSchema },
    async handle(request, { params: { lease_id }, body }) {
      const id = await release(request.broker, request.principal, lease_id, body);
      return jsonText(200, `{"delegation":${(await read(request.broker, request.principal, id)).json}}`);
    },
  }),
  route({
    id: "reply",
    method: "POST",
    path: "/v1/leases/{lease_id}/reply",
    summary: "Finish the delegation",
    description:
      "Ends the work as completed, failed or rejected. A failure with `retryable` is tried again while attempts are left. A repeat with the same body succeeds as `duplicate`. With `next`, the answer also has the worker's next leases.",
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
