/**
 * MCP messages on stdio (lines of JSON) and on HTTP (POSTs). Only the fields that a bridge needs are read: id, method,
 * protocol version and name.
 */
import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { createParser } from "eventsource-parser";
import * as z from "zod";
import { type ErrandApiError, localError } from "../../client/errors.ts";
import { unwrapIds, wrapIds } from "../../util/rpc-ids.ts";

const PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion";
const LONGEST_LINE_CHARS = 16 * 1024 * 1024;

const idSchema = z.union([z.string(), z.number()]);
export type Id = z.infer<typeof idSchema>;

const paramsSchema = z.looseObject({
  _meta: z.looseObject({ [PROTOCOL_VERSION]: z.string().optional() }).optional(),
});
/** A request, notification or response. */
const messageSchema = z.looseObject({
  jsonrpc: z.literal("2.0"),
  id: idSchema.nullish(),
  method: z.string().optional(),
  params: paramsSchema.optional(),
});
export type Message = z.infer<typeof messageSchema>;

/** The message on one line, with the id that it had. */
export const formatMessage = (message: object): string => unwrapIds(JSON.stringify(message));

/** The protocol version that each request names since revision 2026-07-28. Older clients name it in the handshake. */
export const versionOf = ({ params }: Message): string | undefined => params?._meta?.[PROTOCOL_VERSION];

/** For the header `mcp-name`: the parameter that names the target of a method. */
const NAME_PARAMETERS: Readonly<Record<string, string>> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
  "tasks/get": "taskId",
  "tasks/update": "taskId",
  "tasks/cancel": "taskId",
};

/** Encodes a value as MCP requires, unless a header can contain it unchanged. */
function headerValue(value: string): string {
  const isPlain = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value) && !value.startsWith("=?base64?");
  return isPlain ? value : `=?base64?${Buffer.from(value).toString("base64")}?=`;
}

/** The headers that repeat fields of the message, required since revision 2026-07-28. */
export function mirrorHeaders(version: string, { method = "", params }: Message): Record<string, string> {
  const name = params?.[NAME_PARAMETERS[method] ?? ""];
  return {
    "mcp-protocol-version": version,
    "mcp-method": headerValue(method),
    ...(typeof name === "string" && { "mcp-name": headerValue(name) }),
  };
}

/**
 * The line without the byte order mark that some clients on Windows write first, others before each message. JSON cannot
 * begin with it.
 */
const withoutMark = (line: string): string => line.replace(/^\uFEFF+/, "");

/** The lines of the input, without byte order marks. Unlike readline, it does not break lines at U+2028. */
export async function* lines(input: Readable): AsyncGenerator<string> {
  const decoder = new StringDecoder("utf8");
  let rest = "";
  for await (const chunk of input) {
    const parts = (rest + decoder.write(chunk)).split("\n");
    rest = parts.pop() ?? "";
    if (rest.length > LONGEST_LINE_CHARS) {
      throw localError({
        code: "payload_too_large",
        category: "PROTOCOL",
        detail: `a message on stdin is longer than ${LONGEST_LINE_CHARS} characters`,
        recovery: "Send a shorter message, or a URL of the content.",
      });
    }
    for (const line of parts) yield withoutMark(line);
  }
  if (rest !== "") yield withoutMark(rest);
}

/** The messages of a response, one by one. Calls `onData` for each chunk received. */
export async function* messagesOf(response: Response, onData: () => void): AsyncGenerator<string> {
  if (response.headers.get("content-type")?.includes("event-stream") !== true) {
    const text = await response.text();
    if (text !== "") yield text;
    return;
  }
  const found: string[] = [];
  const parser = createParser({ onEvent: ({ data }) => found.push(data) });
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    onData();
    parser.feed(decoder.decode(chunk, { stream: true }));
    for (const data of found.splice(0)) if (data !== "") yield data;
  }
}

/** Undefined if the text is not a message. An id that parsing would change is put into a text. */
export function parseMessage(text: string): Message | undefined {
  try {
    return messageSchema.safeParse(JSON.parse(wrapIds(text))).data;
  } catch {
    return undefined;
  }
}

const CHECK_FIRST =
  "The call may have taken effect: check with list_tasks or check_task_status before you retry it.";
/** Recoveries for a model that uses the broker's tools, and for its user. */
const RECOVERIES: Readonly<Record<string, string>> = {
  unreachable: "Start the broker with 'errand serve', or correct ERRAND_URL; then retry.",
  no_broker: "Start the broker with 'errand serve', or set ERRAND_URL and ERRAND_TOKEN; then retry.",
  connection_lost: CHECK_FIRST,
  no_answer: CHECK_FIRST,
  invalid_response: CHECK_FIRST,
};

const TOKEN_RECOVERY =
  "No tool can fix this. Tell the user to set ERRAND_TOKEN in the env of this server in the MCP client's configuration, to a token, without quotes, that is neither revoked nor expired ('errand token create' creates one).";
const refusedSchema = z.looseObject({
  error: z.looseObject({ data: z.looseObject({ code: z.literal("unauthenticated") }) }),
});

/** The broker's refusal of the token with a recovery for a client on stdio, which sends no headers; else undefined. */
export function withTokenRecovery(message: Message): Message | undefined {
  const { data: refused } = refusedSchema.safeParse(message);
  if (refused === undefined) return undefined;
  const { error } = refused;
  return { ...message, error: { ...error, data: { ...error.data, recovery: TOKEN_RECOVERY } } };
}

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const INTERNAL_ERROR = -32603;
const NUMBERS: Readonly<Record<string, number>> = {
  invalid_json: PARSE_ERROR,
  invalid_request: INVALID_REQUEST,
};
const UNAVAILABLE = 503;

/** A failure of the bridge, in the form of the broker's own errors. */
export function toErrorMessage(id: Id | null, error: ErrandApiError) {
  const { category, code, message, retryable, status, details } = error;
  const recovery = RECOVERIES[code] ?? error.recovery;
  const number = NUMBERS[code] ?? (status || (category === "TRANSPORT" ? UNAVAILABLE : INTERNAL_ERROR));
  const data = { category, code, message, retryable, recovery, ...(details && { details }) };
  return { jsonrpc: "2.0", id, error: { code: number, message: `${message}. ${recovery}`, data } };
}
