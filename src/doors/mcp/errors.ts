/**
 * The error table in MCP's forms: a tool error for the model to act on, and JSON-RPC errors with the same data. Limit:
 * the numeric codes -32000 to -32019, which the specification reserves, are never used.
 */
import { ProtocolError } from "@modelcontextprotocol/server";
import * as z from "zod";
import { preview } from "../../engine/delegations/preview.ts";
import { categorySchema, ERRORS, ErrandError, type ErrorCode } from "../../schema/errors.ts";
import { jsonObjectSchema } from "../../schema/json-object.ts";
import { RECOVERIES } from "./recoveries.ts";

export const toolErrorSchema = z.object({
  category: categorySchema,
  code: z.string(),
  message: z.string(),
  retryable: z.boolean(),
  /** Whether the delegation is still live. */
  delegation_valid: z.boolean().optional(),
  recovery: z.string(),
  retry_after_seconds: z.number().optional(),
  details: jsonObjectSchema.optional(),
  delegation_id: z.string().optional(),
  request_id: z.string().optional(),
});
export type ToolError = z.infer<typeof toolErrorSchema>;

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const INVALID_PARAMS = -32602;
const INTERNAL_ERROR = -32603;

/** A request with thousands of wrong members gets a short response. */
const MAX_ISSUES = 20;
const ISSUE_BYTES = 256;
const MESSAGE_BYTES = 1_024;
const issuesSchema = z.looseObject({
  issues: z.array(z.object({ path: z.string(), reason: z.string() })),
  issues_omitted: z.int().default(0),
});

function limitIssues(details: Record<string, unknown> | undefined): Record<string, unknown> | undefined {
  const found = issuesSchema.safeParse(details);
  if (!found.success) return details;
  const { issues, issues_omitted, ...rest } = found.data;
  const shown = issues.slice(0, MAX_ISSUES).map(({ path, reason }) => ({
    path: preview(path, ISSUE_BYTES),
    reason: preview(reason, ISSUE_BYTES),
  }));
  const omitted = issues_omitted + issues.length - shown.length;
  return { ...rest, issues: shown, ...(omitted > 0 && { issues_omitted: omitted }) };
}

export function toToolError(error: ErrandError, requestId?: string): ToolError {
  const { category, retryable, recovery } = ERRORS[error.code];
  const { delegation_id, delegation_valid, retry_after_seconds } = error.context;
  // More precise than the recovery for the code: it says what the answer to this question must have.
  const own = error.code === "invalid_request" ? error.context.recovery : undefined;
  const details = limitIssues(error.context.details);
  return {
    category,
    code: error.code,
    message: preview(error.message, MESSAGE_BYTES),
    retryable,
    ...(delegation_valid !== undefined && { delegation_valid }),
    recovery: own ?? RECOVERIES[error.code] ?? error.context.recovery ?? recovery,
    // As the Retry-After of HTTP.
    ...((retryable || retry_after_seconds !== undefined) && {
      retry_after_seconds: retry_after_seconds ?? 1,
    }),
    ...(details && { details }),
    ...(delegation_id !== undefined && { delegation_id }),
    ...(requestId !== undefined && { request_id: requestId }),
  };
}

/** JSON-RPC's own code if there is one; else the HTTP status, which is the code of no other error. */
function rpcCodeOf(code: ErrorCode): number {
  const { category, status } = ERRORS[code];
  if (code === "invalid_json" || code === "invalid_utf8") return PARSE_ERROR;
  if (category === "INTERNAL" || status === null) return INTERNAL_ERROR;
  return category === "AUTH" || category === "TRANSPORT" ? status : INVALID_PARAMS;
}

export function toProtocolError(error: ErrandError, requestId?: string): ProtocolError {
  const toolError = toToolError(error, requestId);
  return new ProtocolError(rpcCodeOf(error.code), toolError.message, toolError);
}

/** The response to a request that is refused before the SDK gets it. */
export function errorResponse(
  error: ErrandError,
  requestId: string,
  like?: { status: number; headers?: Headers },
  { isOfParams = false } = {},
): Response {
  const { code, message, data } = toProtocolError(error, requestId);
  const headers = new Headers(like?.headers);
  headers.set("content-type", "application/json");
  // Unless its params are, the request as a whole is invalid.
  const isWhole = code === INVALID_PARAMS && !isOfParams;
  const rpcError = { code: isWhole ? INVALID_REQUEST : code, message, data };
  const body = JSON.stringify({ jsonrpc: "2.0", id: null, error: rpcError });
  return new Response(body, { status: like?.status ?? ERRORS[error.code].status ?? 500, headers });
}

const rpcErrorSchema = z.looseObject({
  error: z.looseObject({ code: z.number(), message: z.string() }),
});

/** Replaces a reserved error code in the SDK's response. */
export async function withoutReservedCodes(response: Response, requestId: string): Promise<Response> {
  const isJson = response.headers.get("content-type")?.includes("json") === true;
  if (response.status < 400 || !isJson) return response;
  const body: unknown = await response.json();
  const found = rpcErrorSchema.safeParse(body);
  const headers = new Headers(response.headers);
  headers.delete("content-length");
  const init = { status: response.status, headers };
  if (!found.success || found.data.error.code > -32000 || found.data.error.code < -32019) {
    return Response.json(body, init);
  }
  const { error, ...rest } = found.data;
  const details = { issues: [{ path: "", reason: error.message }] };
  const refused =
    response.status === 404
      ? new ErrandError("not_found", error.message)
      : new ErrandError("invalid_request", error.message, { details });
  return Response.json(
    { ...rest, error: { ...error, code: INVALID_REQUEST, data: toToolError(refused, requestId) } },
    init,
  );
}
