/**
 * A route as data: method, path, what goes in, what comes out, and the verb behind it. The HTTP routes are
 * made from these, and so is the API description. Limit: JSON in; a handler returns the finished answer.
 */
import { z } from "zod";
import { invalidRequest } from "../../schema/issues.ts";
import type { AuthenticatedRequest } from "./authenticated-request.ts";
import type { TextResponse } from "./text-response.ts";

export interface Input<P, Q, B> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /** The body as it came, parsed but without defaults. */
  readonly raw: unknown;
}

export interface RawInput {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

export type RequestHeader =
  | "Idempotency-Key"
  | "Prefer"
  | "traceparent"
  | "Last-Event-ID"
  | "If-Match"
  | "If-None-Match";
export type ResponseHeader = "ETag" | "Location" | "Idempotency-Replayed";

/** What a caller can use beyond the schemas; for the API description. */
export interface Notes {
  readonly takes?: readonly RequestHeader[];
  readonly gives?: readonly ResponseHeader[];
  /** Its 200 comes as server-sent events, too. */
  readonly streams?: true;
  /** Half characters in its body become U+FFFD; elsewhere they are refused. */
  readonly repairs?: true;
}

interface Spec<P, Q, B> {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** OpenAPI form, `/v1/agents/{agent}`. */
  readonly path: string;
  readonly summary: string;
  readonly params?: z.ZodType<P>;
  readonly query?: z.ZodType<Q>;
  readonly body?: z.ZodType<B>;
  /** Answers by status; errors come from the error table. */
  readonly responses: Readonly<Record<number, z.ZodType | null>>;
  readonly notes?: Notes;
  readonly handle: (request: AuthenticatedRequest, input: Input<P, Q, B>) => Promise<TextResponse | Response>;
}

export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly summary: string;
  readonly schemas: { params?: z.ZodType; query?: z.ZodType; body?: z.ZodType };
  readonly responses: Readonly<Record<number, z.ZodType | null>>;
  readonly notes?: Notes;
  /** Throws at once for what is not valid. */
  readonly run: (request: AuthenticatedRequest, raw: RawInput) => Promise<TextResponse | Response>;
}

const none = z.strictObject({});
/** Checks one part of the input; all problems at once, each with its path. */
export function check<T>(schema: z.ZodType<T>, value: unknown, where: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw invalidRequest(result.error, { where, whole: `The ${where}` });
}

export function route<P = unknown, Q = unknown, B = unknown>(spec: Spec<P, Q, B>): Route {
  const { params, query, body, handle, ...rest } = spec;
  // A part without a schema must be empty; its type parameter is then left at unknown. Made here: a schema costs more
  // to make than to use.
  const schemas = {
    params: params ?? z.custom<P>(),
    query: query ?? z.custom<Q>(),
    body: body ?? z.custom<B>(),
  };
  return {
    ...rest,
    schemas: { ...(params && { params }), ...(query && { query }), ...(body && { body }) },
    run(request, raw) {
      if (!query) check(none, raw.query, "query");
      if (!body) check(none, raw.body, "body");
      return handle(request, {
        params: check(schemas.params, raw.params, "path"),
        query: check(schemas.query, raw.query, "query"),
        body: check(schemas.body, raw.body, "body"),
        raw: raw.body,
      });
    },
  };
}
