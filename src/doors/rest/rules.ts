/** Rules that answer: create, list, read, revoke. Limit: to strangers a rule does not exist. */
import * as z from "zod";
import { createRule, revokeRule } from "../../engine/rules/change.ts";
import { describeRule, listRules } from "../../engine/rules/read.ts";
import { ruleIdSchema, rulePageSchema, ruleSchema } from "../../schema/rule.ts";
import { ruleRequestSchema } from "../../schema/rule-request.ts";
import { agentNameSchema, listQuery } from "../../schema/values.ts";
import { publicPath } from "../http/links.ts";
import { type Route, route } from "../http/route.ts";
import { json, noContent } from "../http/text-response.ts";

const params = z.strictObject({
  /** The rule. */
  rule: ruleIdSchema,
});

export const ruleRoutes: readonly Route[] = [
  route({
    id: "createRule",
    method: "POST",
    path: "/v1/rules",
    summary: "Create a rule",
    description:
      "From now on the broker answers an agent's proposed actions that fit, in your name, at once: those of your delegations or, if you are an approver or the operator, of all. It ends with the token of this request. A repeat with the same Idempotency-Key answers the same rule.",
    body: ruleRequestSchema,
    responses: { 200: ruleSchema, 201: ruleSchema },
    notes: { requestHeaders: ["Idempotency-Key"], responseHeaders: ["Location"] },
    async handle({ broker, principal, identity, idempotencyKey }, { body }) {
      const { id, replayed } = await createRule(broker, { principal, identity, idempotencyKey }, body);
      const described = await describeRule(broker, principal, id);
      const location = publicPath(broker.publicUrl(), `/v1/rules/${id}`);
      return json(replayed ? 200 : 201, described, { location });
    },
  }),
  route({
    id: "listRules",
    method: "GET",
    path: "/v1/rules",
    summary: "List rules",
    description:
      "Lists your rules with their uses, oldest first, also those that have ended lately; operators, approvers and viewers see those of all principals.",
    query: z.strictObject({
      /** Only those for this agent. */
      agent: agentNameSchema.optional(),
      ...listQuery(z.string().min(1).max(128)),
    }),
    responses: { 200: rulePageSchema },
    async handle({ broker, principal }, { query }) {
      return json(200, await listRules(broker, principal, query));
    },
  }),
  route({
    id: "getRule",
    method: "GET",
    path: "/v1/rules/{rule}",
    summary: "Read a rule",
    description: "Answers what it says, whether it is active, and its newest uses.",
    params,
    responses: { 200: ruleSchema },
    async handle({ broker, principal }, { params: { rule: id } }) {
      return json(200, await describeRule(broker, principal, id));
    },
  }),
  route({
    id: "revokeRule",
    method: "DELETE",
    path: "/v1/rules/{rule}",
    summary: "Revoke a rule",
    description:
      "Once this is answered, no gateway answers by the rule; it is still listed with its uses. For its creator and the operator.",
    params,
    responses: { 204: null },
    async handle({ broker, principal }, { params: { rule: id } }) {
      await revokeRule(broker, principal, id);
      return noContent();
    },
  }),
];
