/**
 * A request body, from bytes to plain JSON: UTF-8, well-formed, not too deep, no half characters, nothing that reaches
 * a prototype. Limit: what the members mean is the route's schema's to say.
 */
import type { IncomingMessage } from "node:http";
import { parse } from "secure-json-parse";
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import { halvesIn, mayHoldHalves, wellFormed } from "../../schema/text.ts";

type Incoming = Pick<IncomingMessage, "headers" | "destroyed" | "on" | "off">;

const decoder = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads a body off the connection: a request object of the web's kind costs more than all that is done with it.
 * Throws `payload_too_large` as soon as the size is known, `invalid_request` for a body that breaks off, and what `grow`
 * throws.
 */
export function readBody(
  incoming: Incoming,
  maxBytes: number,
  /** Called with the body's size so far, or as announced; throws when there is no room for it. */
  grow: (bytes: number) => void = () => {},
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const tooLarge = () => reject(new ErrandError("payload_too_large", `A body may have ${maxBytes} bytes.`));
    const announced = Number(incoming.headers["content-length"] ?? 0);
    if (announced > maxBytes) return tooLarge();
    grow(announced);
    const chunks: Buffer[] = [];
    let length = 0;
    let refused = false;
    // The rest of the body is read and dropped.
    const refuse = (error?: unknown) => {
      refused = true;
      chunks.length = 0;
      if (error === undefined) tooLarge();
      else reject(error);
    };
    const data = (chunk: Buffer) => {
      if (refused) return;
      length += chunk.length;
      try {
        if (length > maxBytes) return refuse();
        grow(length);
        chunks.push(chunk);
      } catch (error) {
        refuse(error);
      }
    };
    const end = () => {
      // A request may be parked for long; nothing of its body's reading stays with it.
      incoming.off("data", data).off("end", end).off("error", brokeOff).off("close", brokeOff);
      resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks));
    };
    const brokeOff = () =>
      reject(
        new ErrandError("invalid_request", "The body broke off.", {
          details: { issues: [{ path: "", reason: "did not arrive whole" }] },
        }),
      );
    // Nothing is told of twice.
    if (incoming.destroyed) return brokeOff();
    incoming.on("data", data).on("end", end).on("error", brokeOff).on("close", brokeOff);
  });
}

export interface BodyRules {
  /** Replace half characters by U+FFFD instead of refusing them. */
  readonly repairs?: boolean | undefined;
  /** Called with the parsed body before half characters are refused, so that the refusal can carry the request's id. */
  readonly parsed?: (body: unknown) => void;
}

const MAX_ISSUES = 50;

/** An absent body is `{}`. */
export function parseBody(
  bytes: Uint8Array,
  contentType: string | undefined,
  rules: BodyRules = {},
): unknown {
  if (bytes.byteLength === 0) return {};
  if (contentType !== undefined && !/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(contentType)) {
    throw new ErrandError("unsupported_media_type", "The body must be JSON.");
  }
  const text = decode(bytes);
  const body = parseJson(text);
  rules.parsed?.(body);
  if (!mayHoldHalves(text)) return body;
  if (rules.repairs) return wellFormed(body);
  requireWellFormed(body);
  return body;
}

function requireWellFormed(body: unknown): void {
  const reason = "holds half a character (a lone surrogate): cut text between characters";
  const issues = halvesIn(body, MAX_ISSUES).map((path) => ({ path, reason }));
  const [first] = issues;
  if (!first) return;
  throw new ErrandError("invalid_request", `${first.path || "The body"}: ${reason}`, { details: { issues } });
}

function decode(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new ErrandError("invalid_utf8", "The body is not valid UTF-8.");
  }
}

export function parseJson(text: string): unknown {
  if (depthOf(text) > LIMITS.json_depth.value) {
    throw new ErrandError(
      "invalid_request",
      `The body nests deeper than ${LIMITS.json_depth.value} levels.`,
      {
        details: { issues: [{ path: "", reason: `at most ${LIMITS.json_depth.value} levels of nesting` }] },
      },
    );
  }
  try {
    return parse(text, { protoAction: "error", constructorAction: "error" });
  } catch {
    throw new ErrandError("invalid_json", "The body is not well-formed JSON, or has a forbidden member.");
  }
}

/** Counts brackets outside strings, so that a deep body never reaches a recursive parser. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (let i = 0; i < text.length; i += 1) {
    const char = text.charCodeAt(i);
    if (char === 0x22) {
      i = endOfString(text, i);
      if (i === -1) break;
    } else if (char === 0x7b || char === 0x5b) {
      depth += 1;
      if (depth > deepest) deepest = depth;
    } else if (char === 0x7d || char === 0x5d) {
      depth -= 1;
    }
  }
  return deepest;
}

/** Where the string that opens there closes: behind an even number of backslashes; -1 when it never does. */
function endOfString(text: string, open: number): number {
  for (let quote = text.indexOf('"', open + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let escapes = 0;
    while (text.charCodeAt(quote - 1 - escapes) === 0x5c) escapes += 1;
    if (escapes % 2 === 0) return quote;
  }
  return -1;
}
