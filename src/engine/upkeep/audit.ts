/**
 * The audit log: an entry is written with its action or right after it; the operator reads them, newest first. Limit:
 * bounded in entries, bytes and days; it never contains a token or a body.
 */
import type { Clock } from "../../lifecycle/command.ts";
import type { Redis } from "../../redis/connect.ts";
import { keys } from "../../redis/keys.ts";
import { readLua, Script } from "../../redis/script.ts";
import { TIME_LUA } from "../../redis/time.ts";
import {
  type AuditAction,
  type AuditEntry,
  type AuditFilter,
  auditActionSchema,
} from "../../schema/audit.ts";
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import { toInstant } from "../../schema/values.ts";
import type { Log } from "../../telemetry/log.ts";
import { type Principal, requireOperator } from "../access/access.ts";

const KEPT_MS = LIMITS.audit_days.value * 86_400_000;
/** The most entries that are read for one page of a filtered list. */
const SCAN = 1_000;

/** The operator's entries have a stream of their own, so that others cannot push them out. */
const STREAMS = [keys.audit, keys.auditOthers] as const;

/** For scripts that write an entry together with its action: defines `redis_ms` and `audit`. */
export const AUDIT_LUA = `
local audit_entries, audit_share, audit_ms = ${LIMITS.audit_entries.value}, ${LIMITS.audit_share.value}, ${KEPT_MS}
${TIME_LUA}
${readLua("./audit.lua", import.meta.url)}`;

/** KEYS: stream · ARGV: clock offset, by, action, subject, details. Works when memory is short. */
const addScript = new Script(`#!lua flags=allow-oom
${AUDIT_LUA}
audit(KEYS[1], {ARGV[2], ARGV[3], ARGV[4], ARGV[5]}, ARGV[1])
return 1`);

/** The stream and the script arguments of an entry. */
export function auditArgs(
  by: Principal,
  action: AuditAction,
  subject: string,
  details: Readonly<Record<string, unknown>>,
): { readonly stream: string; readonly args: readonly [string, string, string, string] } {
  const json = JSON.stringify(details);
  const isLarge = Buffer.byteLength(json) > LIMITS.audit_entry_bytes.value;
  const stream = by.kind === "operator" ? STREAMS[0] : STREAMS[1];
  return { stream, args: [by.text, action, subject, isLarge ? '{"truncated":true}' : json] };
}

/** The parts of the broker that writing needs. Not `Broker`, which `Tokens` does not have. */
interface AuditWriter {
  readonly redis: Redis;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Records an action that succeeded. Never throws: the action is done, so an entry that cannot be written is logged.
 * `details` must hold no token and no body.
 */
export async function audit(
  broker: AuditWriter,
  by: Principal,
  action: AuditAction,
  subject: string,
  details: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const { stream, args } = auditArgs(by, action, subject, details);
  try {
    await addScript.run(broker.redis, [stream], [broker.clock.offset_ms, ...args]);
  } catch (error) {
    const err = error instanceof Error ? error.message : "unknown";
    broker.log.error({ err, by: by.text, action, subject }, "audit entry not written");
  }
}

export interface AuditQuery extends AuditFilter {
  readonly cursor?: string | undefined;
  readonly limit: number;
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  readonly next_cursor: string | null;
}

/** A stored entry and its position. Newest first; at the same id, the operator's entry is first. */
interface Row {
  readonly ms: number;
  readonly seq: number;
  readonly stream: number;
  readonly fields: readonly string[];
}

const newestFirst = (a: Omit<Row, "fields">, b: Omit<Row, "fields">): number =>
  b.ms - a.ms || b.seq - a.seq || a.stream - b.stream;
const idOf = ({ ms, seq, stream }: Omit<Row, "fields">): string => `aud_${ms}_${seq}_${stream}`;

/** The parts of the broker that reading needs. */
interface AuditReader {
  readonly bulk: Redis;
  readonly clock: Clock;
}

export async function readAudit(
  broker: AuditReader,
  principal: Principal,
  query: AuditQuery,
): Promise<AuditPage> {
  requireOperator(principal, "read the audit log");
  const from = query.cursor === undefined ? null : parseCursor(query.cursor);
  const isFiltered = [query.action, query.subject, query.by].some((filter) => filter !== undefined);
  const count = isFiltered ? SCAN : query.limit;
  const oldest = Math.max(0, Date.now() + broker.clock.offset_ms - KEPT_MS);
  const streams = await Promise.all(
    STREAMS.map(async (key, stream) => {
      if (query.by !== undefined && (query.by === "operator") !== (stream === 0)) return [];
      const found = await broker.bulk.xrevrange(key, endOf(from, stream), String(oldest), "COUNT", count);
      return found.map(([id, fields]) => toRow(id, stream, fields));
    }),
  );
  const rows = streams.flat().sort(newestFirst);
  // If a stream has more rows than were read, they may precede later rows of the other stream: stop at its last row.
  const cuts = streams.flatMap((found) =>
    found.length < count ? [] : found.slice(-1).map((last) => rows.indexOf(last)),
  );
  const known = cuts.length === 0 ? rows : rows.slice(0, Math.min(...cuts) + 1);
  const entries: AuditEntry[] = [];
  for (const [index, row] of known.entries()) {
    const entry = toEntry(row);
    if (entry && matches(entry, query)) entries.push(entry);
    const isLast = index === rows.length - 1;
    if (entries.length === query.limit && !isLast) return { entries, next_cursor: idOf(row) };
  }
  const last = known.at(-1);
  return { entries, next_cursor: cuts.length === 0 || !last ? null : idOf(last) };
}

function parseCursor(cursor: string): Omit<Row, "fields"> {
  const match = /^aud_(\d{1,16})_(\d{1,16})_([01])$/.exec(cursor);
  if (match) return { ms: Number(match[1]), seq: Number(match[2]), stream: Number(match[3]) };
  throw new ErrandError("invalid_request", "The cursor is not valid.", {
    details: { issues: [{ path: "cursor", reason: "send back next_cursor unchanged" }] },
  });
}

function endOf(from: Omit<Row, "fields"> | null, stream: number): string {
  if (from === null) return "+";
  const id = `${from.ms}-${from.seq}`;
  return stream > from.stream ? id : `(${id}`;
}

function toRow(id: string, stream: number, fields: readonly string[]): Row {
  const [ms, seq] = id.split("-");
  return { ms: Number(ms), seq: Number(seq), stream, fields };
}

/** Null for an action that only a later version knows. */
function toEntry(row: Row): AuditEntry | null {
  const value = (name: string): string => row.fields[row.fields.indexOf(name) + 1] ?? "";
  const action = auditActionSchema.safeParse(value("action"));
  if (!action.success) return null;
  return {
    id: idOf(row),
    at: toInstant(row.ms),
    by: value("by"),
    action: action.data,
    subject: value("subject"),
    details: JSON.parse(value("details")),
  };
}

const matches = (entry: AuditEntry, { action, subject, by }: AuditQuery): boolean =>
  (action === undefined || entry.action === action) &&
  (subject === undefined || entry.subject === subject) &&
  (by === undefined || entry.by === by);
