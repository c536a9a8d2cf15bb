/** The broker's status. Limit: Redis' settings are for the operator and viewers. */
import { status } from "../../engine/upkeep/status.ts";
import { statusSchema } from "../../schema/status.ts";
import { type Route, route } from "../http/route.ts";
import { json } from "../http/text-response.ts";
import { API_INFO } from "../openapi/document.ts";

export const statusRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/v1/status",
    summary: "Version, time, who the caller is; for the operator and viewers, Redis and its settings.",
    responses: { 200: statusSchema },
    async handle(request) {
      return json(200, { version: API_INFO.version, ...(await status(request.broker, request.principal)) });
    },
  }),
];
