/**
 * A route as data: method, path, input schemas, responses and handler. Both the HTTP routes and the API description are
 * derived from it. Limit: request bodies are JSON, but those of files.
 */
import * as z from "zod";
import { invalidRequest, readAs } from "../../schema/issues.ts";
import { unknownId } from "../unknown-id.ts";
import type { AuthenticatedRequest } from "./authenticated-request.ts";
import type { ByteResponse } from "./byte-response.ts";
import type { EventStream } from "./event-stream.ts";
import type { TextResponse } from "./text-response.ts";

export interface Input<P, Q, B> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /** The parsed body without defaults. */
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
  | "If-None-Match"
  | "Range"
  | "Upload-Length"
  | "Upload-Defer-Length"
  | "Upload-Offset";
export type ResponseHeader = "ETag" | "Location" | "Idempotency-Replayed";

/** Properties of the route that the schemas do not express. */
export interface Notes {
  readonly requestHeaders?: readonly RequestHeader[];
  readonly responseHeaders?: readonly ResponseHeader[];
  /** The 200 is also available as server-sent events. */
  readonly streams?: true;
  /** The body as the API description shows it, if the handler validates parts of it by itself. */
  readonly describedBody?: z.ZodType;
  /** Lone surrogates in the body become U+FFFD; other routes refuse them. */
  readonly repairsText?: true;
  /** A request without an Authorization header reaches the handler; its body may have 4 KiB. */
  readonly allowsAnonymous?: true;
  /** The body is bytes, which the handler reads by itself. */
  readonly receivesBytes?: true;
  /** The answer is bytes. */
  readonly sendsBytes?: true;
}

export type RouteResponse = TextResponse | EventStream | ByteResponse;

interface Spec<P, Q, B> {
  /** The operation's name in the API description, which generated clients use: a verb, as in the library. */
  readonly id: string;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** OpenAPI form, `/v1/agents/{agent}`. */
  readonly path: string;
  /** One line, without a full stop. */
  readonly summary: string;
  /** What a caller must know besides, in sentences. */
  readonly description: string;
  readonly params?: z.ZodType<P>;
  readonly query?: z.ZodType<Q>;
  readonly body?: z.ZodType<B>;
  /** Success responses by status; errors come from the error table. */
  readonly responses: Readonly<Record<number, z.ZodType | null>>;
  readonly notes?: Notes;
  readonly handle: (request: AuthenticatedRequest, input: Input<P, Q, B>) => Promise<RouteResponse>;
}

export interface Route {
  readonly id: string;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly summary: string;
  readonly description: string;
  readonly schemas: { params?: z.ZodType; query?: z.ZodType; body?: z.ZodType };
  readonly responses: Readonly<Record<number, z.ZodType | null>>;
  readonly notes?: Notes;
  /** Throws synchronously for invalid input. */
  readonly run: (request: AuthenticatedRequest, raw: RawInput) => Promise<RouteResponse>;
}

const none = z.strictObject({});
/** Validates one part of the input; reports all issues at once, each with its path. */
export function check<T>(schema: z.ZodType<T>, value: unknown, where: string): T {
  const result = readAs(schema, value);
  if (result.success) return result.data;
  throw invalidRequest(result.error, { where, whole: `The ${where}` });
}

function checkPath<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = readAs(schema, value);
  if (result.success) return result.data;
  throw unknownId(value, result.error) ?? invalidRequest(result.error, { where: "path", whole: "The path" });
}

export function route<P = unknown, Q = unknown, B = unknown>(spec: Spec<P, Q, B>): Route {
  const { params, query, body, handle, ...rest } = spec;
  // A part without a schema must be empty. The schemas are created once: creating one costs more than using it.
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
        params: checkPath(schemas.params, raw.params),
        query: check(schemas.query, raw.query, "query"),
        body: check(schemas.body, raw.body, "body"),
        raw: raw.body,
      });
    },
  };
}
