/** The broker's status. Limit: Redis' settings are for the operator and viewers. */
import { status } from "../../engine/status.ts";
import { statusSchema } from "../../schema/status.ts";
import { json } from "../answer.ts";
import { API_INFO } from "../openapi.ts";
import { type Route, route } from "../route.ts";

export const statusRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/v1/status",
    summary: "Version, time, who the caller is; for the operator and viewers, Redis and its settings.",
    answers: { 200: statusSchema },
    async handle(call) {
      return json(200, { version: API_INFO.version, ...(await status(call.broker, call.principal)) });
    },
  }),
];
