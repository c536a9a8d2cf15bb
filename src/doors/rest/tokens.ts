/** Tokens: made, listed, revoked by the operator. Limit: the secret is shown once, at its making. */
import { z } from "zod";
import { requireOperator } from "../../engine/access/access.ts";
import { ErrandError } from "../../schema/errors.ts";
import { newTokenSchema, tokenRequestSchema, tokenSchema } from "../../schema/token.ts";
import { json, nothing } from "../http/answer.ts";
import { type Route, route } from "../http/route.ts";

export const tokenRoutes: readonly Route[] = [
  route({
    method: "POST",
    path: "/v1/tokens",
    summary: "Make a token for a principal; it is shown this once.",
    body: tokenRequestSchema,
    answers: { 201: newTokenSchema },
    async handle(call, { body }) {
      requireOperator(call.principal, "make tokens");
      return json(201, await call.broker.tokens.create(body, call.principal));
    },
  }),
  route({
    method: "GET",
    path: "/v1/tokens",
    summary: "List tokens, without their secrets.",
    answers: { 200: z.strictObject({ tokens: z.array(tokenSchema) }) },
    async handle(call) {
      requireOperator(call.principal, "list tokens");
      return json(200, { tokens: await call.broker.tokens.list() });
    },
  }),
  route({
    method: "DELETE",
    path: "/v1/tokens/{id}",
    summary: "Revoke a token; what it holds open is closed.",
    params: z.strictObject({ id: z.string() }),
    answers: { 204: null },
    async handle(call, { params }) {
      requireOperator(call.principal, "revoke tokens");
      if (!(await call.broker.tokens.revoke(params.id, call.principal))) {
        throw new ErrandError("not_found", `There is no token '${params.id}'.`);
      }
      return nothing(204);
    },
  }),
];
