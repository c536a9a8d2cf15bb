/** Figures of the last hour and day. */
import { readStats } from "../../engine/stats/read.ts";
import { statsFilterSchema, statsPeriodSchema, statsSchema } from "../../schema/stats.ts";
import { type Route, route } from "../http/route.ts";
import { json } from "../http/text-response.ts";

export const statsRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/v1/stats",
    summary:
      "Throughput, queue length, times to a worker and to completion, and failures by code, for the last hour by the minute or the last day by the quarter of an hour; of all agents (operator, approvers, viewers), of one agent, or of one delegator.",
    query: statsFilterSchema.extend({ period: statsPeriodSchema.default("hour") }),
    responses: { 200: statsSchema },
    async handle(request, { query }) {
      return json(200, await readStats(request.broker, request.principal, query));
    },
  }),
];
