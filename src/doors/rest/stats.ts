/** Figures of the last hour and day. */
import * as z from "zod";
import { readStats } from "../../engine/stats/read.ts";
import { readAgentFigures } from "../../engine/stats/read-agents.ts";
import {
  agentFiguresPageSchema,
  statsFilterSchema,
  statsPeriodSchema,
  statsSchema,
} from "../../schema/stats.ts";
import { agentNameSchema, listQuery } from "../../schema/values.ts";
import { type Route, route } from "../http/route.ts";
import { json } from "../http/text-response.ts";

export const statsRoutes: readonly Route[] = [
  route({
    id: "getStats",
    method: "GET",
    path: "/v1/stats",
    summary: "Figures of the last hour or day",
    description:
      "Answers throughput, queue length, times to a worker and to completion, and failures by code, for the last hour by the minute or the last day by the quarter of an hour: of all agents (operator, approvers, viewers), of one agent, or of one delegator.",
    query: statsFilterSchema.extend({
      /** The last hour by the minute, or the last day by the quarter of an hour. */
      period: statsPeriodSchema.default("hour"),
    }),
    responses: { 200: statsSchema },
    async handle(request, { query }) {
      return json(200, await readStats(request.broker, request.principal, query));
    },
  }),
  route({
    id: "getStatsByAgent",
    method: "GET",
    path: "/v1/stats/agents",
    summary: "Figures of each agent's last hour",
    description:
      "Answers how many delegations of each agent ended how, by the quarter of an hour, and their cost: all agents for the operator, approvers and viewers, an agent only itself. The figures are up to 10 seconds old.",
    query: z.strictObject(listQuery(agentNameSchema)),
    responses: { 200: agentFiguresPageSchema },
    async handle(request, { query }) {
      return json(200, await readAgentFigures(request.broker, request.principal, query));
    },
  }),
];
