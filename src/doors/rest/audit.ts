/** The audit log, for the operator. */
import * as z from "zod";
import { readAudit } from "../../engine/upkeep/audit.ts";
import { auditFilterSchema, auditPageSchema } from "../../schema/audit.ts";
import { listQuery } from "../../schema/values.ts";
import { type Route, route } from "../http/route.ts";
import { json } from "../http/text-response.ts";

export const auditRoutes: readonly Route[] = [
  route({
    id: "listAuditEntries",
    method: "GET",
    path: "/v1/audit",
    summary: "List the audit log, newest first",
    description:
      "Lists who changed tokens, sessions or agents, decided about proposed actions, erased delegations, or acted in bulk. For the operator.",
    query: auditFilterSchema.extend(listQuery(z.string().min(1).max(128))),
    responses: { 200: auditPageSchema },
    async handle(request, { query }) {
      return json(200, await readAudit(request.broker, request.principal, query));
    },
  }),
];
