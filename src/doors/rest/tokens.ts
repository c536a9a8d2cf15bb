/** Tokens: the operator creates, lists and revokes them. Limit: the secret is shown only once. */
import * as z from "zod";
import { requireOperator } from "../../engine/access/access.ts";
import { ErrandError } from "../../schema/errors.ts";
import { newTokenSchema, tokenListSchema, tokenRequestSchema } from "../../schema/token.ts";
import { type Route, route } from "../http/route.ts";
import { json, noContent } from "../http/text-response.ts";

export const tokenRoutes: readonly Route[] = [
  route({
    id: "createToken",
    method: "POST",
    path: "/v1/tokens",
    summary: "Create a token",
    description: "Creates a token for a principal; its secret is shown only once. For the operator.",
    body: tokenRequestSchema,
    responses: { 201: newTokenSchema },
    async handle(request, { body }) {
      requireOperator(request.principal, "create tokens");
      return json(201, await request.broker.tokens.create(body, request.principal));
    },
  }),
  route({
    id: "listTokens",
    method: "GET",
    path: "/v1/tokens",
    summary: "List tokens",
    description: "Lists all tokens, without their secrets. For the operator.",
    responses: { 200: tokenListSchema },
    async handle(request) {
      requireOperator(request.principal, "list tokens");
      return json(200, { tokens: await request.broker.tokens.list() });
    },
  }),
  route({
    id: "revokeToken",
    method: "DELETE",
    path: "/v1/tokens/{id}",
    summary: "Revoke a token",
    description: "Its sessions, streams and waiting requests end within a second. For the operator.",
    params: z.strictObject({
      /** The token. */
      id: z.string(),
    }),
    responses: { 204: null },
    async handle(request, { params }) {
      requireOperator(request.principal, "revoke tokens");
      if (!(await request.broker.tokens.revoke(params.id, request.principal))) {
        throw new ErrandError("not_found", `There is no token '${params.id}'.`);
      }
      return noContent();
    },
  }),
];
