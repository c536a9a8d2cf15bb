/** Sessions: opened with a token or a code, listed, revoked. Limit: the secret is shown only once. */
import * as z from "zod";
import { ErrandError } from "../../schema/errors.ts";
import {
  newSessionSchema,
  sessionCodeSchema,
  sessionPageSchema,
  sessionRequestSchema,
} from "../../schema/session.ts";
import { listQuery } from "../../schema/values.ts";
import { type Route, route } from "../http/route.ts";
import { json, noContent } from "../http/text-response.ts";

export const sessionRoutes: readonly Route[] = [
  route({
    id: "createSession",
    method: "POST",
    path: "/v1/sessions",
    summary: "Open a session",
    description:
      "Opens a session of 12 hours with the token of the request, or with a code and no token. Its secret is shown only once.",
    body: sessionRequestSchema,
    responses: { 201: newSessionSchema },
    notes: { allowsAnonymous: true },
    async handle(request, { body: { code } }) {
      const { sessions } = request.broker;
      if (code === undefined) return json(201, await sessions.create(request.identity));
      if (!request.isAnonymous) throw codeAndToken();
      return json(201, await sessions.redeem(code));
    },
  }),
  route({
    id: "createSessionCode",
    method: "POST",
    path: "/v1/sessions/codes",
    summary: "Create a code that opens a session",
    description: "The code opens one session for the token of the request, within ten minutes.",
    responses: { 201: sessionCodeSchema },
    async handle(request) {
      return json(201, await request.broker.sessions.createCode(request.identity));
    },
  }),
  route({
    id: "listSessions",
    method: "GET",
    path: "/v1/sessions",
    summary: "List sessions",
    description:
      "Lists the caller's sessions, or all sessions for the operator; the last to expire is first.",
    query: z.strictObject(listQuery(z.string().min(1).max(128))),
    responses: { 200: sessionPageSchema },
    async handle(request, { query }) {
      return json(200, await request.broker.sessions.list(request.identity, query));
    },
  }),
  route({
    id: "revokeSession",
    method: "DELETE",
    path: "/v1/sessions/{id}",
    summary: "Revoke a session",
    description:
      "Its streams and waiting requests end within a second. To sign out, revoke your own session.",
    params: z.strictObject({
      /** The session. */
      id: z.string(),
    }),
    responses: { 204: null },
    async handle(request, { params: { id } }) {
      if (!(await request.broker.sessions.revoke(id, request.principal))) {
        throw new ErrandError("not_found", `There is no session '${id}'.`);
      }
      return noContent();
    },
  }),
];

const codeAndToken = (): ErrandError =>
  new ErrandError("invalid_request", "code: must be sent without an Authorization header.", {
    details: { issues: [{ path: "code", reason: "must be sent without an Authorization header" }] },
    recovery: "Send either the code in the body or the token in the Authorization header.",
  });
