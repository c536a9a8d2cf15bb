/**
 * Values that many schemas share: names, principals, instants, durations. Limit: syntax only; the engine checks whether a
 * named thing exists.
 */
import * as z from "zod";
import { jsonObjectSchema } from "./json-object.ts";
import { LIMITS } from "./limits.ts";

export const AGENT_NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;
/** The name of an agent: lower-case letters, digits, `_` and `-`, up to 63 characters, for example `scout`. */
export const agentNameSchema = z
  .string()
  .regex(AGENT_NAME, "an agent name is [a-z0-9][a-z0-9_-]{0,62}, for example 'scout'");

/** Ids of conversations come from channels of all kinds. */
const CONTEXT_ID = /^[^\p{Cc}\p{Cs}]{1,512}$/u;
export const CONTEXT_ID_RULE = "1 to 512 characters, without control characters and lone surrogates";
/**
 * The id of a conversation: 1 to 512 characters, without control characters. Nothing but data: no path, key or name
 * is made from one.
 */
export const contextIdSchema = z
  .string()
  .refine((id) => CONTEXT_ID.test(id), `a context_id is ${CONTEXT_ID_RULE}`)
  .meta({ minLength: 1, maxLength: 512 });

const PRINCIPAL = /^(?:operator|(?:agent|caller|approver|viewer):[a-z0-9][a-z0-9_-]{0,62})$/;
/**
 * An identity: `operator`, or a kind (`agent`, `caller`, `approver`, `viewer`), a colon and a name, for example
 * `caller:alice`.
 */
export const principalSchema = z
  .string()
  .regex(PRINCIPAL, "a principal is 'operator' or agent:|caller:|approver:|viewer:<name>");
export type Principal = z.infer<typeof principalSchema>;
/** The kind of a principal. */
export const principalKindSchema = z.enum(["operator", "agent", "caller", "approver", "viewer"]);

/** `*`, a principal, or a kind with a star, for example `caller:*`. */
export const principalPatternSchema = z
  .string()
  .regex(
    /^(?:\*|operator|(?:agent|caller|approver|viewer):(?:\*|[a-z0-9][a-z0-9_-]{0,62}))$/,
    "a pattern is '*', a principal, or a kind with a star, for example 'caller:*'",
  );

/** ISO 8601. The broker writes UTC with milliseconds; a caller may give any offset. */
export const instantSchema = z.iso.datetime({ offset: true, abort: true });

/** A later instant plus a duration could need a five-digit year. */
const LAST_INSTANT_MS = Date.UTC(9000, 0, 1);
/** An ISO 8601 instant as a caller gives it, with any offset, before the year 9000. */
export const givenInstantSchema = instantSchema.refine(
  (text) => Date.parse(text) < LAST_INSTANT_MS,
  "must be before the year 9000",
);

export const DELEGATION_ID = /^dlg_[0-9a-z]{1,3}_[0-9a-z]{26}$/;
/** The id of a delegation, `dlg_…`. */
export const delegationIdSchema = z.string().regex(DELEGATION_ID, "not a delegation id");
export const LEASE_ID = /^lse_[0-9a-z]{1,3}_[0-9a-z]{26}_[0-9]{1,9}$/;
/** The id of a lease, `lse_…`. It is no credential: the token decides. */
export const leaseIdSchema = z.string().regex(LEASE_ID, "not a lease id");

/**
 * A list of which at most `max` + 1 items are checked. A megabyte can hold hundreds of thousands of invalid items, and
 * each check costs microseconds.
 */
export const boundedArray = <T extends z.ZodType>(item: T, min: number, max: number) =>
  z.preprocess(
    (list: z.input<T>[]) => (Array.isArray(list) && list.length > max ? list.slice(0, max + 1) : list),
    z.array(item).min(min).max(max),
  );

/** Saved with the delegation by the holder of its lease, for the next holder. */
export const checkpointSchema = jsonObjectSchema.refine(
  (value) => new TextEncoder().encode(JSON.stringify(value)).length <= LIMITS.checkpoint_bytes.value,
  "the checkpoint exceeds 4 KiB as JSON",
);
/** A small JSON object whose members the agent chooses. */
export type Checkpoint = z.infer<typeof checkpointSchema>;

/** An address that the broker calls: http or https, up to 2048 characters. */
export const httpUrlSchema = z.url({ protocol: /^https?$/ }).max(2048);

/** The name of a failure: snake_case, up to 64 characters. */
export const errorCodeSchema = z
  .string()
  .regex(/^[a-z][a-z0-9_]{0,63}$/, "a code is snake_case, up to 64 characters");

/** How long the broker may hold the request, up to 60 seconds. */
export const waitSecondsSchema = z.number().min(0).max(LIMITS.wait_seconds.value);

/** A number in a query string. */
export const queryNumber = (schema: z.ZodType<number, number>) =>
  z
    .string()
    .regex(/^-?\d+(\.\d+)?$/, "not a number")
    .transform(Number)
    .pipe(schema);

/** Paging through a list that ends: from the `next_cursor` of the page before. */
export const listQuery = <C extends z.ZodType>(cursor: C) => ({
  /** `next_cursor` of the page before. Without one, the list begins. */
  cursor: cursor.optional(),
  /** How many entries at most, 1 to 100. */
  limit: queryNumber(z.int().min(1).max(LIMITS.list_page.value)).default(LIMITS.list_page.value),
});

/** Paging through a growing list: from a cursor, optionally waiting for more. */
export const pageQuery = {
  /** The cursor to continue from: `cursor` of the page before. `0`: from the oldest that is kept. */
  after: z.string().min(1).max(4096).optional(),
  /** How long to wait for the first entry, up to 60 seconds. */
  wait_seconds: queryNumber(waitSecondsSchema).default(0),
  /** How many entries at most, 1 to 1000. */
  limit: queryNumber(z.int().min(1).max(LIMITS.page.value)).default(100),
};

/** A cache of formatted seconds: instants formatted together share few seconds. */
const formattedSeconds: { second: number; text: string }[] = [];
/** A prime, so that instants a whole number of days apart get different places. */
const CACHE_SIZE = 31;

/** Formats milliseconds since the epoch as `YYYY-MM-DDTHH:MM:SS.mmmZ`. */
export function toInstant(ms: number): string {
  const second = Math.floor(ms / 1000);
  const place = second % CACHE_SIZE;
  let cached = formattedSeconds[place];
  if (cached?.second !== second) {
    cached = { second, text: new Date(second * 1000).toISOString().slice(0, -4) };
    formattedSeconds[place] = cached;
  }
  const rest = Math.trunc(ms) - second * 1000;
  return `${cached.text}${rest < 10 ? "00" : rest < 100 ? "0" : ""}${rest}Z`;
}
