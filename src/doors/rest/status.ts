/** The broker's status. Limit: only the operator and viewers see the settings of Redis. */
import { status } from "../../engine/upkeep/status.ts";
import { statusSchema } from "../../schema/status.ts";
import { type Route, route } from "../http/route.ts";
import { json } from "../http/text-response.ts";
import { API_INFO } from "../openapi/document.ts";

export const statusRoutes: readonly Route[] = [
  route({
    id: "getStatus",
    method: "GET",
    path: "/v1/status",
    summary: "Read the broker's status",
    description:
      "Answers the broker's version and time, and the caller's principal; for the operator and viewers, also the settings of Redis.",
    responses: { 200: statusSchema },
    async handle(request) {
      return json(200, { version: API_INFO.version, ...(await status(request.broker, request.principal)) });
    },
  }),
];
