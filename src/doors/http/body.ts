/**
 * Reads a request body and parses it as JSON: valid UTF-8, limited depth and number of values, no lone surrogates (half
 * characters), no numbers that lose digits, no members that reach a prototype. The route's schema validates the rest.
 */
import type { IncomingMessage } from "node:http";
import { parse } from "secure-json-parse";
import { incompleteBody } from "../../engine/errors.ts";
import { ErrandError } from "../../schema/errors.ts";
import { INEXACT_NUMBER, inexactNumberPaths, isExactNumber } from "../../schema/exact-numbers.ts";
import { LIMITS } from "../../schema/limits.ts";
import { loneSurrogatePaths, mayHaveLoneSurrogates, wellFormed } from "../../schema/text.ts";
import { endOfNumber, endOfString, startsNumber } from "../../util/json-scan.ts";
import { wrapIds } from "../../util/rpc-ids.ts";

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
    const incomplete = () => reject(incompleteBody());
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
  /** The body is a JSON-RPC message: its id is put into a text if parsing would change it. */
  readonly wrapsIds?: boolean;
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
  const sent = decode(bytes);
  const text = rules.wrapsIds ? wrapIds(sent) : sent;
  const extent = extentOf(text);
  requireBounded(extent);
  const body = parseJson(text);
  rules.parsed?.(body);
  if (!extent.isExact) refuseInexact(text);
  if (!mayHaveLoneSurrogates(text)) return body;
  if (rules.repairsText) return wellFormed(body);
  requireWellFormed(body);
  return body;
}

function refuseInexact(text: string): never {
  const issues = inexactNumberPaths(text, MAX_ISSUES).map((path) => ({ path, reason: INEXACT_NUMBER }));
  const where = issues[0]?.path || "The body";
  throw new ErrandError("inexact_number", `${where} ${INEXACT_NUMBER}.`, { details: { issues } });
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

function parseJson(text: string): unknown {
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

/** What a parsed body would have; its memory, and the time to check it, grow with these and not with its bytes. */
interface Extent {
  readonly depth: number;
  /** Members of objects, in all. */
  readonly members: number;
  /** Members of objects and elements of arrays, in all. */
  readonly values: number;
  /** Whether JavaScript keeps every number. */
  readonly isExact: boolean;
}

function requireBounded({ depth, members, values }: Extent): void {
  refuseBeyond(LIMITS.json_depth.value, depth, (most) => [
    `The body nests deeper than ${most} levels.`,
    `at most ${most} levels of nesting`,
  ]);
  refuseBeyond(LIMITS.json_members.value, members, (most) => [
    `The body has ${members} members in its objects; the limit is ${most}.`,
    `at most ${most} members of objects`,
  ]);
  refuseBeyond(LIMITS.json_values.value, values, (most) => [
    `The body has ${values} values; the limit is ${most}.`,
    `at most ${most} members and elements`,
  ]);
}

function refuseBeyond(most: number, count: number, say: (most: number) => [text: string, reason: string]) {
  if (count <= most) return;
  const [text, reason] = say(most);
  throw new ErrandError("invalid_request", text, {
    details: { issues: [{ path: "", reason }] },
    recovery: "Send large data as text or as a raw part, or split it into several requests.",
  });
}

/**
 * Counts brackets, colons and commas outside strings, because a body with too many must not reach the parser, and checks
 * numbers. Of text that is not JSON it counts something, and the parser refuses it.
 */
export function extentOf(text: string): Extent {
  let depth = 0;
  let deepest = 0;
  let members = 0;
  // Each comma separates two values of one container, and each container that is not empty has one more value.
  let commas = 0;
  let filled = 0;
  let opened = false;
  let isExact = true;
  for (let i = 0; i < text.length; i += 1) {
    const char = text.charCodeAt(i);
    // White space.
    if (char <= 0x20) continue;
    const closes = char === 0x7d || char === 0x5d;
    if (opened && !closes) filled += 1;
    opened = char === 0x7b || char === 0x5b;
    if (char === 0x22) {
      i = endOfString(text, i);
      if (i === -1) break;
    } else if (opened) {
      depth += 1;
      if (depth > deepest) deepest = depth;
    } else if (closes) {
      depth -= 1;
    } else if (char === 0x3a) {
      members += 1;
    } else if (char === 0x2c) {
      commas += 1;
    } else if (startsNumber(char)) {
      const end = endOfNumber(text, i);
      isExact &&= isExactNumber(text, i, end);
      i = end - 1;
    }
  }
  return { depth: deepest, members, values: commas + filled, isExact };
}
