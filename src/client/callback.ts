/**
 * Verifies a callback and parses its event. Limit: the broker repeats a callback whose answer was lost, and the repeat
 * is valid, too; recognize it by `delegation_id` and `seq`.
 */
import { Webhook } from "standardwebhooks";
import { secretSchema } from "../schema/callback.ts";
import type { DelegationEvent, StreamEvent } from "../schema/event.ts";
import { toEvent } from "./events.ts";

export type CallbackFault = "missing" | "old" | "forged" | "invalid";

/** Thrown for a callback that is not genuine or not understood; answer it with status 400. */
export class CallbackError extends Error {
  override readonly name = "CallbackError";
  /**
   * `missing`: a signature header is missing or malformed. `old`: signed too long ago (perhaps a replay), or in the
   * future. `forged`: altered, or signed with none of the secrets. `invalid`: genuine, but not an event.
   */
  readonly code: CallbackFault;

  constructor(code: CallbackFault, message: string) {
    super(message);
    this.code = code;
  }
}

export interface VerifyOptions {
  /** The largest allowed difference between the time of signing and this machine's clock, in seconds. Default 300. */
  readonly toleranceSeconds?: number | undefined;
}

/** The `headers` of a web `Request`, or of Node's `IncomingMessage`. */
export type CallbackHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

const TOLERANCE_SECONDS = 300;

/**
 * Checks that a callback was signed recently with one of `secrets`, by the Standard Webhooks scheme, and returns its
 * event. `body` must be the raw body, not JSON that was parsed and serialized again. Pass several secrets while you
 * rotate them. Throws {@link CallbackError}, or a TypeError if there is no secret or one lacks the form `whsec_…`.
 *
 * @example
 * ```ts
 * const event = verifyCallback(await request.text(), request.headers, [secret]);
 * if (event.status === "interrupted") await notify(event.delegation_id);
 * ```
 */
export function verifyCallback(
  body: string | Uint8Array,
  headers: CallbackHeaders,
  secrets: readonly string[],
  options: VerifyOptions = {},
): DelegationEvent {
  const keys = secrets.map(toKey);
  if (keys.length === 0) throw new TypeError("verifyCallback needs at least one secret");
  const id = header(headers, "webhook-id");
  const at = header(headers, "webhook-timestamp");
  const signatures = header(headers, "webhook-signature");
  const text = toText(body);
  const signedAt = toInstant(at, options.toleranceSeconds ?? TOLERANCE_SECONDS);
  const given = signatures.split(" ");
  const isGenuine = keys
    .map((key) => key.sign(id, signedAt, text))
    .some((right) => given.some((one) => isSame(one, right)));
  if (!isGenuine) {
    throw new CallbackError("forged", "the callback was altered, or signed with another secret");
  }
  const event = eventOf(text);
  if (event && event.type !== "RESET" && event.type !== "DELEGATION_SNAPSHOT") return event;
  throw new CallbackError("invalid", "the callback's body is not an event of a delegation");
}

function eventOf(text: string): StreamEvent | null {
  try {
    return toEvent(fromJson(text));
  } catch (error) {
    throw new CallbackError("invalid", error instanceof Error ? error.message : "the body is not an event");
  }
}

/** The error does not show the value: even an invalid secret may be confidential. */
function toKey(secret: string): Webhook {
  if (!secretSchema.safeParse(secret).success) {
    throw new TypeError("a callback secret must be whsec_ followed by 24 to 64 bytes in base64");
  }
  return new Webhook(secret);
}

function header(headers: CallbackHeaders, name: string): string {
  const value = isHeaders(headers) ? headers.get(name) : recordValue(headers, name);
  if (value === null || value === undefined || value === "") {
    throw new CallbackError("missing", `the callback has no ${name} header`);
  }
  return value;
}

/** Checks for a method instead of the class, because a framework may have its own class. */
function isHeaders(headers: CallbackHeaders): headers is Headers {
  return "get" in headers && typeof headers.get === "function";
}

function recordValue(headers: Exclude<CallbackHeaders, Headers>, name: string): string | undefined {
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  return typeof found === "string" ? found : found?.join(" ");
}

/** Fails for invalid UTF-8, because the signature covers the exact bytes. */
function toText(body: string | Uint8Array): string {
  if (typeof body === "string") return body;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    throw new CallbackError("forged", "the callback's body is not UTF-8");
  }
}

function toInstant(at: string, toleranceSeconds: number): Date {
  if (!/^\d{1,12}$/.test(at)) {
    throw new CallbackError("missing", "the webhook-timestamp header is not a time in seconds");
  }
  const ms = Number(at) * 1000;
  const lateSeconds = Math.round((Date.now() - ms) / 1000);
  // False for a tolerance of NaN, which therefore tolerates nothing.
  if (Math.abs(lateSeconds) <= toleranceSeconds) return new Date(ms);
  const when = lateSeconds > 0 ? `${lateSeconds} s ago` : `${-lateSeconds} s ahead of this clock`;
  throw new CallbackError("old", `the callback was signed ${when}`);
}

/** Compares in constant time, so that the time does not reveal how much matches. */
function isSame(given: string, right: string): boolean {
  if (given.length !== right.length) return false;
  let difference = 0;
  for (let at = 0; at < right.length; at += 1) difference |= given.charCodeAt(at) ^ right.charCodeAt(at);
  return difference === 0;
}

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
