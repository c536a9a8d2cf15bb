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
import { LIMITS } from "../../schema/limits.ts";
import { toInstant } from "../../schema/values.ts";
import type { Log } from "../../telemetry/log.ts";
import { type Principal, requireOperator } from "../access/access.ts";
import { invalidCursor } from "../list-cursor.ts";

const KEPT_MS = LIMITS.audit_days.value * 86_400_000;
/** The entries of a stream that a filtered list reads at once. */
const SCAN = 1_000;
/**
 * The operator's entries have a stream of their own, so that others cannot push them out. Decisions and changes of schedules,
 * which may be many, are in the other stream, also the operator's.
 */
const STREAMS = [keys.audit, keys.auditOthers] as const;

/** How often a page that is still empty reads on: enough for full streams, so that a rare entry is on the first page. */
const SCANS = STREAMS.length * (Math.ceil(LIMITS.audit_entries.value / SCAN) + 1);

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
  const mayBeMany = ["delegation.decide", "schedule.", "rule.", "subscription.", "link."].some((kind) =>
    action.startsWith(kind),
  );
  const stream = by.kind === "operator" && !mayBeMany ? STREAMS[0] : STREAMS[1];
  return { stream, args: [by.text, action, subject, isLarge ? '{"truncated":true}' : json] };
}

/** The parts of the broker that writing needs. Not `Broker`, which `Tokens` does not have. */
export interface AuditWriter {
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
  const oldest = Math.max(0, Date.now() + broker.clock.offset_ms - KEPT_MS);
  const backlogs = STREAMS.map((key, stream): Backlog => {
    const isOther = query.by !== undefined && query.by !== "operator" && stream === 0;
    return { key, stream, rows: [], next: 0, end: endOf(from, stream), isAtEnd: isOther };
  });
  const entries: AuditEntry[] = [];
  let last: Row | undefined;
  for (let scan = 0; scan < SCANS && entries.length === 0; scan += 1) {
    await Promise.all(
      backlogs
        .filter(isUsedUp)
        .map((backlog) => read(broker.bulk, backlog, oldest, isFiltered ? SCAN : query.limit)),
    );
    // A stream that is used up but has more may have rows that precede those of the other.
    while (!backlogs.some(isUsedUp) && entries.length < query.limit) {
      const row = takeNewest(backlogs);
      if (row === undefined) return { entries, next_cursor: null };
      last = row;
      const entry = matches(row, query) ? toEntry(row) : null;
      if (entry) entries.push(entry);
    }
  }
  const isOver = backlogs.every(({ isAtEnd, next, rows }) => isAtEnd && next === rows.length);
  return { entries, next_cursor: isOver || !last ? null : idOf(last) };
}

/** What was read of a stream. The rows before `next` are taken. */
interface Backlog {
  readonly key: string;
  readonly stream: number;
  rows: readonly Row[];
  next: number;
  /** Where to read on, as XREVRANGE takes it. */
  end: string;
  isAtEnd: boolean;
}

const isUsedUp = ({ isAtEnd, next, rows }: Backlog): boolean => !isAtEnd && next === rows.length;

async function read(redis: Redis, backlog: Backlog, oldest: number, count: number): Promise<void> {
  const found = await redis.xrevrange(backlog.key, backlog.end, String(oldest), "COUNT", count);
  backlog.rows = found.map(([id, fields]) => toRow(id, backlog.stream, fields));
  backlog.next = 0;
  backlog.isAtEnd = found.length < count;
  const last = found.at(-1);
  if (last) backlog.end = `(${last[0]}`;
}

/** Takes the newest of the rows that are left. */
function takeNewest(backlogs: readonly Backlog[]): Row | undefined {
  let from: Backlog | undefined;
  let newest: Row | undefined;
  for (const backlog of backlogs) {
    const row = backlog.rows[backlog.next];
    if (row === undefined || (newest && newestFirst(newest, row) < 0)) continue;
    from = backlog;
    newest = row;
  }
  if (from) from.next += 1;
  return newest;
}

function parseCursor(cursor: string): Omit<Row, "fields"> {
  const match = /^aud_(\d{1,16})_(\d{1,16})_([01])$/.exec(cursor);
  if (match) return { ms: Number(match[1]), seq: Number(match[2]), stream: Number(match[3]) };
  throw invalidCursor();
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

/** Names are at even places: an agent may be called `details`. */
const fieldOf = ({ fields }: Row, name: string): string =>
  fields.find((_, at) => at % 2 === 1 && fields[at - 1] === name) ?? "";

/** Null for an action that only a later version knows. */
function toEntry(row: Row): AuditEntry | null {
  const action = auditActionSchema.safeParse(fieldOf(row, "action"));
  if (!action.success) return null;
  return {
    id: idOf(row),
    at: toInstant(row.ms),
    by: fieldOf(row, "by"),
    action: action.data,
    subject: fieldOf(row, "subject"),
    details: JSON.parse(fieldOf(row, "details")),
  };
}

const matches = (row: Row, query: AuditQuery): boolean =>
  (["action", "subject", "by"] as const).every(
    (name) => query[name] === undefined || fieldOf(row, name) === query[name],
  );
