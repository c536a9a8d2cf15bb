/** Replies of agents that speak only A2A, 1.0 or 0.3. Limit: no `next`, which only our own protocol has. */
import * as z from "zod";
import { replyA2a } from "../../engine/leases/a2a-reply.ts";
import { jsonObjectSchema } from "../../schema/json-object.ts";
import { replySchema } from "../../schema/lease.ts";
import { agentNameSchema } from "../../schema/values.ts";
import { type Route, route } from "../http/route.ts";
import { jsonText } from "../http/text-response.ts";
import { parseA2aReply } from "./a2a-reply.ts";

export const replyRoutes: readonly Route[] = [
  route({
    id: "replyA2a",
    method: "POST",
    path: "/v1/agents/{agent}/replies",
    summary: "Reply in the form of A2A",
    description:
      "Matches a JSON-RPC response, Message or Task of A2A 1.0 or 0.3 to its delegation, as the agent's reply, question or progress.",
    params: z.strictObject({
      /** The agent's name. */
      agent: agentNameSchema,
    }),
    body: jsonObjectSchema,
    responses: { 200: replySchema },
    // Other software writes these replies; refusing one would lose finished work.
    notes: { repairsText: true },
    async handle(request, { params: { agent }, raw }) {
      const { address, action } = parseA2aReply(raw);
      const { outcome, record } = await replyA2a(
        request.broker,
        request.principal,
        agent,
        address,
        action,
        raw,
      );
      return jsonText(200, `{"outcome":"${outcome}","delegation":${record.json}}`);
    },
  }),
];
