/**
 * Ids of JSON-RPC messages that a parser would change: numbers beyond 2^53, fractions, texts with needless escapes. They
 * are put into a text while the message is parsed and answered, and taken out of it again in the answer. So each id
 * comes back as it was sent, byte for byte.
 */
import { memberSpans, type Span } from "./json-scan.ts";

const WRAPPED = "errand-id:";
/** A longer id is left as it is. */
const MAX_CHARS = 1_024;

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/;
const LONE_SURROGATE = /\\u[dD][89a-fA-F]/;

/** Whether this id was put into a text. */
export const isWrappedId = (id: unknown): id is string => typeof id === "string" && id.startsWith(WRAPPED);

/** The message with an id that survives parsing, and the same id in a cancel of that message. */
export function wrapIds(json: string): string {
  const { id, method, params } = Object.fromEntries(memberSpans(json, ["id", "method", "params"]));
  const spans = id ? [id] : [];
  if (params && method && json.slice(method.start, method.end) === '"notifications/cancelled"') {
    const requestId = memberSpans(json, ["requestId"], params.start).get("requestId");
    if (requestId) spans.push(requestId);
  }
  return replaced(json, spans, wrapped);
}

/** The answer's text with the id that the message had. */
export function unwrapIds(json: string): string {
  const id = memberSpans(json, ["id"]).get("id");
  return id ? replaced(json, [id], unwrapped) : json;
}

/** The text of an id as it was sent. */
export const rawIdOf = (id: unknown): string =>
  isWrappedId(id) ? id.slice(WRAPPED.length) : (JSON.stringify(id) ?? "null");

function replaced(json: string, spans: readonly Span[], by: (raw: string) => string): string {
  let text = json;
  // From the last one, so that the places of the others stay right.
  for (const { start, end } of spans.toSorted((one, other) => other.start - one.start)) {
    const raw = text.slice(start, end);
    const next = by(raw);
    if (next !== raw) text = text.slice(0, start) + next + text.slice(end);
  }
  return text;
}

function wrapped(raw: string): string {
  if (raw.length > MAX_CHARS) return raw;
  return (NUMBER.test(raw) && !isKept(raw)) || (raw.startsWith('"') && changes(raw))
    ? JSON.stringify(WRAPPED + raw)
    : raw;
}

/** An integer that comes back as it is written. */
const isKept = (raw: string): boolean =>
  Number.isSafeInteger(Number(raw)) && JSON.stringify(Number(raw)) === raw;

/** Lone surrogates are refused where all others are. */
function changes(raw: string): boolean {
  if (LONE_SURROGATE.test(raw)) return false;
  try {
    const id: unknown = JSON.parse(raw);
    return JSON.stringify(id) !== raw || isWrappedId(id);
  } catch {
    return false;
  }
}

function unwrapped(raw: string): string {
  try {
    const id: unknown = JSON.parse(raw);
    return isWrappedId(id) ? rawIdOf(id) : raw;
  } catch {
    return raw;
  }
}
