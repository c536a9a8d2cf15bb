/**
 * The one error table as MCP has it: a tool's error for the model to act on, and JSON-RPC errors with the same
 * data. Limit: of the numeric codes those that the specification leaves to others (-32000 to -32019) are never used.
 */
import { ProtocolError } from "@modelcontextprotocol/server";
import * as z from "zod";
import { preview } from "../../engine/delegations/delegate.ts";
import { categorySchema, ERRORS, ErrandError, type ErrorCode } from "../../schema/errors.ts";
import { RECOVERIES } from "./recoveries.ts";

export const toolErrorSchema = z.object({
  category: categorySchema,
  code: z.string(),
  message: z.string(),
  retryable: z.boolean(),
  /** Whether the delegation that it is about still lives. */
  delegation_valid: z.boolean().optional(),
  recovery: z.string(),
  retry_after_seconds: z.number().optional(),
  details: z.record(z.string(), z.unknown()).optional(),
  delegation_id: z.string().optional(),
  request_id: z.string().optional(),
});
export type ToolError = z.infer<typeof toolErrorSchema>;

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const INVALID_PARAMS = -32602;
const INTERNAL_ERROR = -32603;

/** A request with thousands of wrong members has no answer of its own size. */
const MOST_ISSUES = 20;
const ISSUE_BYTES = 256;
const MESSAGE_BYTES = 1_024;
const issuesSchema = z.looseObject({
  issues: z.array(z.object({ path: z.string(), reason: z.string() })),
  issues_omitted: z.int().default(0),
});

function shortened(details: Record<string, unknown> | undefined): Record<string, unknown> | undefined {
  const found = issuesSchema.safeParse(details);
  if (!found.success) return details;
  const { issues, issues_omitted, ...rest } = found.data;
  const shown = issues.slice(0, MOST_ISSUES).map(({ path, reason }) => ({
    path: preview(path, ISSUE_BYTES),
    reason: preview(reason, ISSUE_BYTES),
  }));
  const omitted = issues_omitted + issues.length - shown.length;
  return { ...rest, issues: shown, ...(omitted > 0 && { issues_omitted: omitted }) };
}

export function toToolError(error: ErrandError, requestId?: string): ToolError {
  const { category, retryable, recovery } = ERRORS[error.code];
  const { delegation_id, delegation_valid, retry_after_seconds } = error.context;
  const details = shortened(error.context.details);
  return {
    category,
    code: error.code,
    message: preview(error.message, MESSAGE_BYTES),
    retryable,
    ...(delegation_valid !== undefined && { delegation_valid }),
    recovery: RECOVERIES[error.code] ?? error.context.recovery ?? recovery,
    ...(retry_after_seconds !== undefined && { retry_after_seconds }),
    ...(details && { details }),
    ...(delegation_id !== undefined && { delegation_id }),
    ...(requestId !== undefined && { request_id: requestId }),
  };
}

/** What is wrong with the request has a code of JSON-RPC's own; the rest its HTTP status, which nobody else uses. */
function numberOf(code: ErrorCode): number {
  const { category, status } = ERRORS[code];
  if (code === "invalid_json" || code === "invalid_utf8") return PARSE_ERROR;
  if (category === "INTERNAL" || status === null) return INTERNAL_ERROR;
  return category === "AUTH" || category === "TRANSPORT" ? status : INVALID_PARAMS;
}

export function toProtocolError(error: ErrandError, requestId?: string): ProtocolError {
  const told = toToolError(error, requestId);
  return new ProtocolError(numberOf(error.code), told.message, told);
}

/** An answer to a request that never reached a server of the SDK. */
export function errorResponse(
  error: ErrandError,
  requestId: string,
  like?: { status: number; headers?: Headers },
): Response {
  const { code, message, data } = toProtocolError(error, requestId);
  const headers = new Headers(like?.headers);
  headers.set("content-type", "application/json");
  // Nothing of the message was looked at, so it is about the request as a whole.
  const whole = { code: code === INVALID_PARAMS ? INVALID_REQUEST : code, message, data };
  const body = JSON.stringify({ jsonrpc: "2.0", id: null, error: whole });
  return new Response(body, { status: like?.status ?? ERRORS[error.code].status ?? 500, headers });
}

const numbered = z.looseObject({
  error: z.looseObject({ code: z.number(), message: z.string() }),
});

/** The SDK's own refusals, some of which have codes that are not to be used any more. */
export async function withoutOldCodes(response: Response, requestId: string): Promise<Response> {
  const isJson = response.headers.get("content-type")?.includes("json") === true;
  if (response.status < 400 || !isJson) return response;
  const body: unknown = await response.json();
  const found = numbered.safeParse(body);
  const headers = new Headers(response.headers);
  headers.delete("content-length");
  const init = { status: response.status, headers };
  if (!found.success || found.data.error.code > -32000 || found.data.error.code < -32019) {
    return Response.json(body, init);
  }
  const { error, ...rest } = found.data;
  const refused = new ErrandError(response.status === 404 ? "not_found" : "invalid_request", error.message);
  return Response.json(
    { ...rest, error: { ...error, code: INVALID_REQUEST, data: toToolError(refused, requestId) } },
    init,
  );
}
