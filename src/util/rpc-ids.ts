/**
 * Ids of JSON-RPC messages, and MCP's tokens for progress, that a parser would change: numbers beyond 2^53, fractions, texts
 * with needless escapes. They are put into a text while the message is parsed and answered, and taken out of it again in
 * the answer. So each comes back as it was sent, byte for byte, also those of a batch.
 */
import { elementSpans, memberSpans, type Span } from "./json-scan.ts";

const WRAPPED = "errand-id:";
/** A longer id is left as it is. */
const MAX_CHARS = 1_024;
/** A larger batch is refused. */
const MAX_MESSAGES = 1_000;

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/;
const LONE_SURROGATE = /\\u[dD][89a-fA-F]/;

/** Whether this id was put into a text. */
export const isWrappedId = (id: unknown): id is string => typeof id === "string" && id.startsWith(WRAPPED);

/**
 * The message, or the batch, with ids that survive parsing, and the same ids in a cancel of such a message. A token for
 * progress is as opaque as an id.
 */
export const wrapIds = (json: string): string => replaced(json, spansIn(json, TOKENS_SENT), wrapped);

/** The answer's text with the ids and tokens that the message had. */
export const unwrapIds = (json: string): string => replaced(json, spansIn(json, TOKENS_ANSWERED), unwrapped);

/** Where a message has ids and tokens of a client besides its own id: paths in its params, by its method. */
interface Tokens {
  readonly [method: string]: readonly string[];
}
const CANCEL = { '"notifications/cancelled"': ["requestId"] };
const TOKENS_SENT: Tokens = CANCEL;
const TOKENS_ANSWERED: Tokens = { ...CANCEL, '"notifications/progress"': ["progressToken"] };

/** Whether the parsed message or batch has an id or token that was put into a text. */
export const hasWrapped = (body: unknown): boolean =>
  (Array.isArray(body) ? body : [body]).some((message: unknown) => {
    const { id, params } = Object(message);
    return isWrappedId(id) || isWrappedId(Object(Object(params)._meta).progressToken);
  });

function spansIn(json: string, tokens: Tokens): Span[] {
  const batch = elementSpans(json, MAX_MESSAGES);
  const starts = batch.length > 0 ? batch.map(({ start }) => start) : [0];
  return starts.flatMap((start) => messageSpans(json, start, tokens));
}

function messageSpans(json: string, from: number, tokens: Tokens): Span[] {
  const { id, method, params } = Object.fromEntries(memberSpans(json, ["id", "method", "params"], from));
  const spans = id ? [id] : [];
  if (!params || !method) return spans;
  const names = tokens[json.slice(method.start, method.end)] ?? [];
  const inParams = memberSpans(json, ["_meta", ...names], params.start);
  const meta = inParams.get("_meta");
  const token = meta && memberSpans(json, ["progressToken"], meta.start).get("progressToken");
  return [...spans, ...names.map((name) => inParams.get(name)), token].filter((span) => span !== undefined);
}

/** The text of an id as it was sent. */
export const rawIdOf = (id: unknown): string =>
  isWrappedId(id) ? id.slice(WRAPPED.length) : (JSON.stringify(id) ?? "null");

function replaced(json: string, spans: readonly Span[], by: (raw: string) => string): string {
  const pieces: string[] = [];
  let kept = 0;
  for (const { start, end } of spans.toSorted((one, other) => one.start - other.start)) {
    const raw = json.slice(start, end);
    const next = by(raw);
    if (next === raw) continue;
    pieces.push(json.slice(kept, start), next);
    kept = end;
  }
  return pieces.length === 0 ? json : pieces.join("") + json.slice(kept);
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
