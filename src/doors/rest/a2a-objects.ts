/**
 * Converts Messages and Artifacts of A2A 1.0 or 0.3 to 1.0 JSON. Limit: unknown members pass through unchanged.
 */
import type * as z from "zod";
import { type Artifact, artifactSchema, type Message, messageSchema } from "../../schema/a2a.ts";
import { ErrandError } from "../../schema/errors.ts";
import { invalidRequest, readAs } from "../../schema/issues.ts";

export type Members = Readonly<Record<string, unknown>>;

/** The error for a body that is not an A2A reply, with the path of the issue. */
export function malformed(path: string, reason: string): ErrandError {
  return new ErrandError("invalid_request", `${path || "The body"}: ${reason}`, {
    details: { issues: [{ path, reason }] },
  });
}

export const isObject = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const at = (path: string, member: string | number): string =>
  path === "" ? String(member) : `${path}.${member}`;

/** The members that are set: in ProtoJSON null means unset, and 0.3 agents write it for every optional field. */
export function membersOf(value: unknown, path: string): Members {
  if (!isObject(value)) throw malformed(path, "must be an object");
  return present(value);
}

function present(members: Members): Members {
  return Object.fromEntries(
    Object.entries(members).filter(([, member]) => member !== null && member !== undefined),
  );
}

/** An absent list is empty, as in ProtoJSON. */
export function listOf<T>(value: unknown, path: string, toItem: (item: unknown, path: string) => T): T[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw malformed(path, "must be an array");
  return value.map((item, index) => toItem(item, at(path, index)));
}

/** The names in 1.0 and 0.3, and the numbers, which ProtoJSON allows. */
const ROLES = new Map<unknown, Message["role"]>([
  ["ROLE_USER", "ROLE_USER"],
  ["user", "ROLE_USER"],
  [1, "ROLE_USER"],
  ["ROLE_AGENT", "ROLE_AGENT"],
  ["agent", "ROLE_AGENT"],
  [2, "ROLE_AGENT"],
]);

export const isAgentMessage = (message: unknown): boolean =>
  isObject(message) && ROLES.get(message.role) === "ROLE_AGENT";

/** `makeMessageId` returns the id for a message without one. */
export function toMessage(value: unknown, path: string, makeMessageId: () => string): Message {
  const { kind = "message", role = "ROLE_AGENT", messageId = "", parts, ...rest } = membersOf(value, path);
  if (kind !== "message") throw malformed(at(path, "kind"), "must be message");
  const known = ROLES.get(role);
  if (known === undefined) throw malformed(at(path, "role"), "must be ROLE_AGENT or ROLE_USER");
  const message = {
    ...rest,
    messageId: messageId === "" ? makeMessageId() : messageId,
    role: known,
    parts: listOf(parts, at(path, "parts"), toPart),
  };
  return checked(messageSchema, message, path);
}

export function toArtifact(value: unknown, path: string): Artifact {
  const { parts, ...rest } = membersOf(value, path);
  const artifact = { ...rest, parts: listOf(parts, at(path, "parts"), toPart) };
  return checked(artifactSchema, artifact, path);
}

function checked<T>(schema: z.ZodType<T>, value: unknown, path: string): T {
  const result = readAs(schema, value);
  if (result.success) return result.data;
  throw invalidRequest(result.error, { whole: "The body", under: path });
}

const CONTENT = ["text", "raw", "url"] as const;

function toPart(value: unknown, path: string): Members {
  const { kind, ...part } = membersOf(value, path);
  // Null is a value only for `data`, and only if there is no other content.
  const none = CONTENT.every((key) => part[key] === undefined);
  const nullData = none && isObject(value) && value.data === null && { data: null };
  switch (kind) {
    case undefined:
      return { ...part, ...nullData };
    case "text":
      if (part.text === undefined) throw malformed(at(path, "text"), "a text part must have text");
      return part;
    case "data":
      if (part.data === undefined && !nullData)
        throw malformed(at(path, "data"), "a data part must have data");
      return unwrapped({ ...part, ...nullData });
    case "file": {
      const { file, ...rest } = part;
      const { bytes, uri, mimeType, name } = membersOf(file, at(path, "file"));
      if (bytes === undefined && uri === undefined) {
        throw malformed(at(path, "file"), "a file must have bytes or a uri");
      }
      return present({ ...rest, raw: bytes, url: uri, mediaType: mimeType, filename: name });
    }
    default:
      throw malformed(at(path, "kind"), "must be text, file or data");
  }
}

/** In 0.3 data is an object; the A2A SDKs wrap any other value in one and set this flag. */
const WRAPPED = "data_part_compat";

function unwrapped(part: Members): Members {
  const { data, metadata, ...rest } = part;
  if (!isObject(metadata) || metadata[WRAPPED] !== true || !isObject(data) || !Object.hasOwn(data, "value")) {
    return part;
  }
  const { [WRAPPED]: _flag, ...others } = metadata;
  return { ...rest, data: data.value, ...(Object.keys(others).length > 0 && { metadata: others }) };
}
