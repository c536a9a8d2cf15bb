/**
 * The credentials with which the broker, or the relay, calls an agent's A2A server: the HTTP schemes of A2A's security
 * schemes, and headers for API keys. Limit: no OAuth flows; a token must be replaced before it expires.
 */
import * as z from "zod";
import { LIMITS } from "./limits.ts";
import { PRINTABLE } from "./text.ts";

const MAX_HEADERS = 8;
const headerValue = z
  .string()
  .regex(PRINTABLE, "must be printable ASCII characters, without line breaks or surrounding blanks");

/** Headers that belong to the connection or the message, and are not the operator's to set. */
const RESERVED: ReadonlySet<string> = new Set([
  "accept",
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "expect",
  "host",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

const headerName = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/, "is not the name of an HTTP header")
  .refine((name) => !RESERVED.has(name.toLowerCase()), "cannot be set: HTTP and A2A set it");

const areDistinct = (headers: Readonly<Record<string, string>>): boolean => {
  const names = Object.keys(headers);
  return new Set(names.map((name) => name.toLowerCase())).size === names.length;
};

/** Control characters, which RFC 7617 excludes. */
const CONTROL = /\p{Cc}/u;
const basicText = z.string().refine((text) => !CONTROL.test(text), "must not contain control characters");

/** Sent as `Authorization: Bearer <token>`. */
export const bearerCredentialsSchema = z.strictObject({
  /** A bearer token. */
  scheme: z.literal("bearer"),
  /** Printable ASCII characters without blanks. */
  token: z.string().regex(/^[\x21-\x7e]+$/, "must be printable ASCII characters without blanks"),
});
/** Sent as `Authorization: Basic …`, in UTF-8. */
export const basicCredentialsSchema = z.strictObject({
  /** A user name and a password. */
  scheme: z.literal("basic"),
  /** Without colons and control characters. */
  username: basicText.refine((name) => !name.includes(":"), "must not contain a colon"),
  /** Without control characters. */
  password: basicText,
});
/** Sent as headers, for example `X-Api-Key`. */
export const headerCredentialsSchema = z.strictObject({
  /** Headers of any names. */
  scheme: z.literal("headers"),
  /** The headers by name: 1 to 8, none of those that HTTP and A2A set. */
  headers: z
    .record(headerName, headerValue)
    .refine((headers) => Object.keys(headers).length > 0, "must name a header")
    .refine((headers) => Object.keys(headers).length <= MAX_HEADERS, `at most ${MAX_HEADERS} headers`)
    .refine(areDistinct, "must not name a header twice"),
});

export const credentialsSchema = z
  .discriminatedUnion("scheme", [bearerCredentialsSchema, basicCredentialsSchema, headerCredentialsSchema])
  .refine(
    (value) => new TextEncoder().encode(JSON.stringify(value)).length <= LIMITS.credentials_bytes.value,
    `the credentials exceed ${LIMITS.credentials_bytes.value} bytes as JSON`,
  );
/** Credentials for an A2A server. The broker never shows them. */
export type Credentials = z.infer<typeof credentialsSchema>;
