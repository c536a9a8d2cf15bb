/**
 * Reads a request body and parses it as JSON: valid UTF-8, limited depth, no lone surrogates (half characters), no
 * members that reach a prototype. The route's schema validates the rest.
 */
import type { IncomingMessage } from "node:http";
import { parse } from "secure-json-parse";
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import { loneSurrogatePaths, mayHaveLoneSurrogates, wellFormed } from "../../schema/text.ts";

type Incoming = Pick<IncomingMessage, "headers" | "destroyed" | "on" | "off">;

const decoder = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads a body from the connection, without the cost of a web Request. Throws `payload_too_large` as soon as the size is
 * known, `invalid_request` for an incomplete body, and what `grow` throws.
 */
export function readBody(
  incoming: Incoming,
  maxBytes: number,
  /** Called with the size announced or received so far; throws beyond a limit. */
  grow: (bytes: number) => void = () => {},
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const tooLarge = () =>
      reject(new ErrandError("payload_too_large", `The body exceeds ${maxBytes} bytes.`));
    const announced = Number(incoming.headers["content-length"] ?? 0);
    if (announced > maxBytes) return tooLarge();
    grow(announced);
    const chunks: Buffer[] = [];
    let length = 0;
    let refused = false;
    // The rest of the body is read and discarded.
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
      // A parked request must not retain these closures.
      incoming.off("data", data).off("end", end).off("error", incomplete).off("close", incomplete);
      resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks));
    };
    const incomplete = () =>
      reject(
        new ErrandError("invalid_request", "The body is incomplete: the connection closed before its end.", {
          details: { issues: [{ path: "", reason: "is incomplete" }] },
        }),
      );
    // A destroyed request emits no further events.
    if (incoming.destroyed) return incomplete();
    incoming.on("data", data).on("end", end).on("error", incomplete).on("close", incomplete);
  });
}

/** Throws if the body is encoded (compressed): its size, and so its cost, would not be known from its length. */
export function requirePlain(header: string | undefined): void {
  if (header === undefined) return;
  const encodings = header.split(",").map((one) => one.trim().toLowerCase());
  if (encodings.every((one) => one === "" || one === "identity")) return;
  throw new ErrandError("unsupported_encoding", "The body has a Content-Encoding; no encoding is supported.");
}

export interface BodyRules {
  /** Replace lone surrogates by U+FFFD instead of refusing the body. */
  readonly repairsText?: boolean | undefined;
  /** Called with the parsed body before lone surrogates are refused, so that the error can carry the JSON-RPC id. */
  readonly parsed?: (body: unknown) => void;
}

const MAX_ISSUES = 50;

/** Parses a body; an absent one counts as `{}`. */
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
  if (!mayHaveLoneSurrogates(text)) return body;
  if (rules.repairsText) return wellFormed(body);
  requireWellFormed(body);
  return body;
}

function requireWellFormed(body: unknown): void {
  const reason = "contains half a character (a lone surrogate); cut text between characters";
  const issues = loneSurrogatePaths(body, MAX_ISSUES).map((path) => ({ path, reason }));
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
    throw notJson(text);
  }
}

/** From the message of a syntax error: the place, or at least the character. */
function whereIn(reason: string): string {
  if (/end of JSON input/.test(reason)) return ": it ends too early";
  const [, at] = /\bat position (\d+)/.exec(reason) ?? [];
  if (at !== undefined) return `: see character ${Number(at) + 1}`;
  const [, unexpected] = /^Unexpected token '?([!-~])'?,/.exec(reason) ?? [];
  return unexpected === undefined ? "" : `: unexpected '${unexpected}' outside a string`;
}

/** Why the text was refused. V8 gives the position of most syntax errors; the rest of its message may quote the body. */
function notJson(text: string): ErrandError {
  try {
    JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : "";
    return new ErrandError("invalid_json", `The body is not well-formed JSON${whereIn(reason)}.`);
  }
  return new ErrandError("invalid_json", "The body has a member named __proto__ or constructor.", {
    recovery: "Rename or remove that member.",
  });
}

/** Counts brackets outside strings: a deep body must not reach a recursive parser. */
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

/** The index of the closing quote of the string that starts at `open`, or -1: an even number of backslashes precedes it. */
function endOfString(text: string, open: number): number {
  for (let quote = text.indexOf('"', open + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let escapes = 0;
    while (text.charCodeAt(quote - 1 - escapes) === 0x5c) escapes += 1;
    if (escapes % 2 === 0) return quote;
  }
  return -1;
}
