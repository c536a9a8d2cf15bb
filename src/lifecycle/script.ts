/**
 * The text of transition.lua with the head that is generated from the state table and the error table.
 * Limit: two scripts with one body: at full memory Redis refuses the one for moves that grow a delegation.
 */
import { readFileSync } from "node:fs";
import { TICKET_LUA } from "../queue/ticket-script.ts";
import { Script, toLua } from "../redis/script.ts";
import { type AgentSpec, agentRequestSchema } from "../schema/agent.ts";
import { type DelegationError, TERMINAL_STATES } from "../schema/delegation.ts";
import { ERRORS, type ErrorCode } from "../schema/errors.ts";
import { LEASE_LOST_REASONS } from "../schema/lease.ts";
import { LIMITS } from "../schema/limits.ts";
import { SHOWN } from "./record.ts";
import { MOVE_NAMES, MOVES, type Move } from "./states.ts";

/** What the script works with beside the tables. */
export const NUMBERS = {
  /** A ticket that nobody popped is looked for after this long, and then ever more rarely. */
  check_ms: 5_000,
  check_max_ms: 300_000,
  /** What is owed besides the record is left to its gateway this long; then the sweep sees to it. */
  follow_ms: 5_000,
  /** How long a deleted record's id is refused to a submit that is still under way. */
  deleted_ms: 600_000,
  /** Releases without a pause; further ones back off. */
  free_releases: 10,
  /** Failed hand-offs without a pause; further ones back off. */
  free_handoffs: 100,
  delegation_bytes: LIMITS.delegation_bytes.value,
  delegation_events: LIMITS.delegation_events.value,
  event_bytes: LIMITS.event_bytes.value,
  children: LIMITS.children.value,
  progress_per_second: LIMITS.progress_per_second.value,
  pushes: LIMITS.pushes.value,
  /** What a delegation takes besides its bodies; its first `kept_events` included. Measured: docs/operations.md, Sizing. */
  kept_bytes: 10_240,
  kept_events: 4,
  /** What each further event takes besides its text. */
  kept_event_bytes: 1_024,
  /** What an idempotency key takes that outlives its delegation, and for how long after the submit it is kept at least. */
  key_bytes: 320,
  idempotency_ms: LIMITS.idempotency_hours.value * 3_600_000,
  /** The text of an event is in its delegation's stream and in two feeds; a message is in the history as well. */
  event_copies: 4,
  /** What a feed is kept beyond its newest event at most. */
  feed_spare_ms: 60_000,
  /** Events that the shard's own stream keeps for live subscribers. */
  live_events: LIMITS.live_events.value,
} as const;

/** An error as it stands on a delegation, from the one table. */
export function failure(code: ErrorCode, message: string = ERRORS[code].title): DelegationError {
  const { category, retryable, recovery } = ERRORS[code];
  return { category, code, message, retryable, recovery };
}

/** The numbers of an agent that the script works with, in the units it works in; stored in the agent's hash. */
export function agentNumbers(spec: AgentSpec) {
  const { limits, backoff } = spec;
  return {
    max_attempts: limits.max_attempts,
    lease_ms: Math.round(limits.lease_seconds * 1000),
    max_working: limits.max_working,
    max_waiting: limits.max_waiting,
    interrupt_ttl_ms: Math.round(limits.interrupt_ttl_seconds * 1000),
    backoff_initial_ms: backoff.initial_ms,
    backoff_factor: backoff.factor,
    backoff_max_ms: backoff.max_ms,
    backoff_jitter: backoff.jitter,
  };
}

const LETTERS = LEASE_LOST_REASONS.map((reason, index) => [reason, "ABCDEFGH".charAt(index)] as const);
const letterOf = (reason: string): string | undefined => LETTERS.find(([known]) => known === reason)?.[1];

/** A Lua function that maps strings: compared one by one, for a table would be built at every call. */
function luaMap(name: string, entries: readonly (readonly [string, unknown])[]): string {
  const lines = entries.map(([key, value]) => `  if key == ${toLua(key)} then return ${toLua(value)} end`);
  return [`local function ${name}(key)`, ...lines, "  return nil", "end"].join("\n");
}

const asSet = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, true]));

/** A row as the script uses it: what it asks often is a set. */
function luaRow({
  from,
  to,
  lease,
  ends,
  requires,
  event,
  status,
  queue,
  delay,
  returned,
  spends,
  forgets,
  degrades_to,
  worn_out,
}: Move) {
  const letter = ends && letterOf(ends);
  return {
    from: asSet(from),
    to,
    lease,
    ends: letter,
    needs: asSet(requires),
    event,
    status,
    queue,
    delay,
    returned,
    spends,
    forgets,
    degrades_to,
    worn_out,
  };
}

/** The record's fields that the script works with. An empty text is none. */
const NUMBER_FIELDS = [
  ...["version", "attempt", "max_attempts", "priority", "ticket", "ready_at", "fence", "lease_ms"],
  ...[
    "lease_expires_at",
    "confirm_by",
    "deadline_at",
    "start_by",
    "check_at",
    "created_at",
    "interrupt_expires_at",
  ],
  ...[
    "releases",
    "closed_by",
    "returned",
    "finished_at",
    "bytes",
    "artifact_bytes",
    "artifact_fence",
    "pace_at",
    "pace_count",
    "answered",
    "unseen",
    "places",
    "secret_bytes",
    "event_bytes",
    "handoffs",
    "unpublished",
    "kept",
    "push_bytes",
  ],
  ...["children", "callbacks", "spoken", "notify_seq", "notified_seq", "follow_at"],
];
const TEXT_FIELDS = [
  ...[
    "state",
    "target",
    "delegator",
    "context_id",
    "parent_id",
    "nonce",
    "interrupt_id",
    "ends",
    "reply_hash",
  ],
  ...["cascade", "redriven_as"],
];

function readRecord(): string {
  const fields = [...NUMBER_FIELDS, ...TEXT_FIELDS];
  const names = fields.map((name) => `'${name}'`).join(", ");
  const members = fields.map((name, index) => {
    const value = `v[${index + 1}]`;
    const read =
      index < NUMBER_FIELDS.length ? `tonumber(${value} or '')` : `${value} ~= '' and ${value} or nil`;
    return `${name} = ${read}`;
  });
  return `local function read_record(key)
  local v = redis.call('HMGET', key, ${names})
  local record = { ${members.join(", ")} }
  record.ends = record.ends or ''
  return record
end`;
}

/** What the gateways are told of a record, in the order in which record.ts takes it. */
function shownRecord(): string {
  return `local function shown(key)
  local v = redis.call('HMGET', key, ${SHOWN.map((name) => `'${name}'`).join(", ")})
  for i = 1, ${SHOWN.length} do v[i] = v[i] or '' end
  return table.concat(v, '\\n')
end`;
}

function head(flags: string): string {
  const codes = ["attempts_exhausted", "deadline_exceeded", "interrupt_expired", "not_picked_up"] as const;
  const failures = codes.map((code) => [code, JSON.stringify(failure(code))] as const);
  return [
    `#!lua${flags}`,
    TICKET_LUA,
    readRecord(),
    shownRecord(),
    luaMap(
      "row",
      MOVE_NAMES.map((name) => [name, luaRow(MOVES[name])]),
    ),
    luaMap(
      "is_terminal",
      TERMINAL_STATES.map((state) => [state, true]),
    ),
    luaMap(
      "end_reason",
      LETTERS.map(([reason, letter]) => [letter, reason]),
    ),
    luaMap("failure_json", failures),
    luaMap("agent_default", Object.entries(agentNumbers(agentRequestSchema.parse({})))),
  ].join("\n");
}

function withNumbers(text: string): string {
  const numbers = new Map<string, number>(Object.entries(NUMBERS));
  return text.replaceAll(/\bLIMITS\.(\w+)/g, (_, name: string) => {
    const value = numbers.get(name);
    if (value === undefined) throw new TypeError(`transition.lua names an unknown limit: ${name}`);
    return String(value);
  });
}

const body = withNumbers(readFileSync(new URL("./transition.lua", import.meta.url), "utf8"));

/** With a second key, the target, the last argument is the command of a taker. */
const text = (flags: string) => `${head(flags)}
local time_ms = redis_ms()
local known_settings = {}
local transition
function transition(key, ARGV, taker, made)
${body}
end
return (transition(KEYS[1], ARGV, KEYS[2] and { KEYS[2], ARGV[#ARGV] } or nil))`;

/** For the moves that the state table calls `new` or `grows`. */
export const growingScript = new Script(text(""));
export const inFlightScript = new Script(text(" flags=allow-oom"));
