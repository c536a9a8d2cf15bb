/** One call of the SDK, as its request shows it, and which answers prove that they are answers to it. */
import { jsonObject } from "./guarded-fetch.ts";

export interface RpcCall {
  /** It gives the server a message, so it must not be repeated blindly. */
  readonly sends: boolean;
  /** The SDK reads the answer as an event stream. */
  readonly streams: boolean;
  /** The answer in a body or an event; undefined if it is none to this call. */
  readonly answerIn: (text: string) => object | undefined;
  /** The error in the body of an HTTP error; undefined if no A2A server made it. */
  readonly errorIn: (text: string, status: number) => object | undefined;
  /** A JSON-RPC error without an id: whoever answered could not read the request. */
  readonly isUnread: (text: string) => boolean;
}

const SENDING = /^(?:message\/(?:send|stream)|Send(?:Streaming)?Message)$/;
const SENDING_PATH = /\/message:(?:send|stream)$/;

export function callOf(url: URL, init: RequestInit | undefined): RpcCall {
  const streams = new Headers(init?.headers).get("accept") === "text/event-stream";
  const request = typeof init?.body === "string" ? jsonObject(init.body) : undefined;
  const id = member(request, "jsonrpc") === "2.0" ? member(request, "id") : undefined;
  if (id === undefined) {
    const sends = SENDING_PATH.test(url.pathname);
    return { sends, streams, answerIn: jsonObject, errorIn: httpError, isUnread: () => false };
  }
  const answerIn = (text: string): object | undefined => {
    const answer = jsonObject(text);
    const isOurs = answer && String(member(answer, "id")) === String(id) && member(answer, "id") !== null;
    // Some servers repeat a number as text; the SDK compares strictly.
    return isOurs && ("result" in answer || "error" in answer) ? { ...answer, id } : undefined;
  };
  const errorIn = (text: string): object | undefined => {
    const answer = answerIn(text);
    return answer && "error" in answer ? answer : undefined;
  };
  const isUnread = (text: string): boolean => {
    const answer = jsonObject(text);
    const isError = member(answer, "jsonrpc") === "2.0" && typeof member(answer, "error") === "object";
    return isError && (member(answer, "id") ?? null) === null;
  };
  const sends = SENDING.test(String(member(request, "method")));
  return { sends, streams, answerIn, errorIn, isUnread };
}

function member(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}

const A2A_DOMAIN = "a2a-protocol.org";

/** A2A 1.0: an error with details of A2A, or about the request; 0.3: a code of JSON-RPC. Gateways have errors like these. */
function httpError(text: string, status: number): object | undefined {
  const body = jsonObject(text);
  const error = member(body, "error");
  const details: unknown = member(error, "details");
  const isA2a = Array.isArray(details) && details.some((one) => member(one, "domain") === A2A_DOMAIN);
  const isInvalid =
    status === 400 && member(error, "code") === 400 && typeof member(error, "status") === "string";
  const code = member(body, "code");
  const isLegacy = typeof code === "number" && code < 0 && typeof member(body, "message") === "string";
  return isA2a || isInvalid || isLegacy ? body : undefined;
}
