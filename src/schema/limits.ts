/**
 * The table of limits, with the error code beyond each. The schemas, the script and the docs are derived from it. The
 * limits of one agent (`max_working` and so on) are its settings. One table, so it is long.
 */
import type { ErrorCode } from "./errors.ts";

interface Limit {
  readonly value: number;
  readonly unit: string;
  readonly what: string;
  /** The error code beyond it; null where the broker cuts or drops instead of refusing. */
  readonly code: ErrorCode | null;
}

const limit = (value: number, unit: string, what: string, code: ErrorCode | null): Limit => ({
  value,
  unit,
  what,
  code,
});

const KIB = 1024;
const MIB = 1024 * KIB;

export const LIMITS = {
  body_bytes: limit(
    MIB,
    "bytes",
    "one request body; `ERRAND_MAX_BODY_BYTES` changes it",
    "payload_too_large",
  ),
  json_depth: limit(64, "levels", "nesting of a body", "invalid_request"),
  delegation_bytes: limit(
    3 * MIB,
    "bytes",
    "message, history, artifacts and reply of one delegation together, as JSON",
    "payload_too_large",
  ),
  metadata_bytes: limit(16 * KIB, "bytes", "`metadata` of a delegation, as JSON", "invalid_request"),
  auto_approve_bytes: limit(4 * KIB, "bytes", "`auto_approve` of a delegation, as JSON", "invalid_request"),
  checkpoint_bytes: limit(4 * KIB, "bytes", "the checkpoint of a delegation, as JSON", "invalid_request"),
  delegation_events: limit(
    10_000,
    "events",
    "of one delegation; beyond it artifacts, questions and follow-ups are refused, progress is dropped, and each release spends an attempt; its final reply is never refused",
    "limit_reached",
  ),
  event_bytes: limit(
    MIB,
    "bytes of event text",
    "of one delegation, without what `delegation_bytes` counts; beyond it the same applies as beyond `delegation_events`",
    "limit_reached",
  ),
  returns: limit(
    100,
    "returns",
    "of one delegation, counted with its other releases, by workers that cannot work at all (`worker` of a release); the next one fails it",
    "worker_unavailable",
  ),
  paused_workers: limit(10, "workers", "shown as paused for each agent; the newest are kept", null),
  progress_per_second: limit(
    100,
    "events a second",
    "progress and artifact chunks of one delegation",
    "rate_limited",
  ),
  tree_depth: limit(8, "delegations", "nested under each other", "delegation_loop"),
  pushes: limit(10, "push notification configs", "of one delegation", "limit_reached"),
  queued_calls: limit(
    32,
    "callbacks",
    "queued at once for one delegation: its newest questions and its end; callbacks for older questions are dropped. A push config has one queued call",
    null,
  ),
  children: limit(20_000, "children", "of one delegation, by `parent_id`", "limit_reached"),
  idempotency_hours: limit(
    24,
    "hours",
    "an idempotency key is kept from the submit, and at least as long as the record of its delegation; a refused submit leaves no key",
    null,
  ),
  void_minutes: limit(
    10,
    "minutes",
    "an unused delegation id stays blocked after its submit was refused while others with the same idempotency key were in progress, or after another body took the key",
    null,
  ),
  live_events: limit(
    10_000,
    "events",
    "(about) of all delegations of a shard, kept for live subscribers; the oldest are dropped",
    null,
  ),
  live_bytes: limit(64 * MIB, "bytes", "the same events, trimmed by the sweep", null),
  delegator_percent: limit(
    50,
    "percent",
    "(about) of Redis' `maxmemory`, for the delegations of one delegator and the idempotency keys that outlive them, split evenly among the shards; beyond it the delegator's new work, follow-ups and push configs are refused, but not the output of its agents; `ERRAND_DELEGATOR_PERCENT` changes it (the operator has no such limit)",
    "quota_exceeded",
  ),
  memory_new_work: limit(75, "percent", "of Redis' `maxmemory`; above it new work is refused", "overloaded"),
  memory_ceiling: limit(
    90,
    "percent",
    "of Redis' `maxmemory`; above it follow-ups, artifacts, questions, push configs and children are refused and progress is dropped; work can still be leased, released and ended",
    "overloaded",
  ),
  ceiling_bytes: limit(
    64 * KIB,
    "bytes",
    "a reply or answer, while memory is above `memory_ceiling`",
    "overloaded",
  ),
  schema_bytes: limit(64 * KIB, "bytes", "the `schema` of one question, as JSON", "invalid_request"),
  schema_depth: limit(32, "schemas", "nested in the `schema` of one question", "invalid_request"),
  schema_steps: limit(
    100_000,
    "steps",
    "to check one answer against its question's schema: about one for each keyword and each value that it applies to",
    "invalid_request",
  ),
  batch: limit(100, "delegations", "one batch", "invalid_request"),
  parts: limit(10_000, "parts", "one message or artifact, as sent", "invalid_request"),
  artifacts: limit(1_000, "artifacts", "one reply or A2A Task", "invalid_request"),
  polls: limit(
    1_000,
    "requests",
    "waiting for one principal at one gateway, or at all on one port (the operator has no such limit)",
    "quota_exceeded",
  ),
  streams: limit(
    1_000,
    "streams",
    "open for one principal at one gateway, or at all on one port (the operator has no such limit)",
    "quota_exceeded",
  ),
  sessions: limit(
    1_000,
    "sessions",
    "of MCP at one gateway for one principal; the session idle for longest is closed for a new one, which is refused if all are active",
    "quota_exceeded",
  ),
  session_seconds: limit(
    3_600,
    "seconds",
    "an MCP session may be idle; then it is closed, and its client must initialize again",
    "not_found",
  ),
  session_bytes: limit(
    64 * KIB,
    "bytes",
    "the `initialize` request of an MCP session, as JSON; the session keeps it",
    "payload_too_large",
  ),
  wait_seconds: limit(60, "seconds", "a request may wait", "invalid_request"),
  outage_seconds: limit(
    3,
    "s",
    "without a sign of life of any gateway, after which there was an outage; a lease that ran out in it gets one more period from its end",
    null,
  ),
  graces: limit(
    5,
    "outages",
    "that extend a lease since its holder's last call; then it expires as without an outage",
    null,
  ),
  leases: limit(32, "leases", "granted to one poll", "invalid_request"),
  page: limit(1_000, "entries", "on a page of events or results", "invalid_request"),
  list_page: limit(
    100,
    "entries",
    "on a page of delegations, agents, sessions or audit entries",
    "invalid_request",
  ),
  page_bytes: limit(
    8 * MIB,
    "bytes",
    "(about) on a page of events, results or a list; the page then ends early, and its cursor continues from there",
    null,
  ),
  connections: limit(25_000, "connections", "open at one gateway; further ones are closed at once", null),
  header_seconds: limit(
    10,
    "seconds",
    "the headers of a request may take to arrive; then the connection is closed",
    null,
  ),
  request_seconds: limit(
    30,
    "seconds",
    "a whole request may take to arrive; then the connection is closed",
    null,
  ),
  request_bytes: limit(
    32 * MIB,
    "bytes",
    "in request bodies above 4 KiB of one principal at one gateway; each counts from its first byte until the response is sent",
    "quota_exceeded",
  ),
  gateway_request_bytes: limit(
    128 * MIB,
    "bytes",
    "the same for all principals at one gateway",
    "overloaded",
  ),
  requests: limit(
    256,
    "requests",
    "in progress at one gateway for one principal, without those that wait or stream; one with a large body counts as one more for each 16 KiB; further ones queue, and are refused after about 5 s",
    "overloaded",
  ),
  unread_bytes: limit(
    32 * MIB,
    "bytes",
    "in responses above 64 KiB that one principal has not read at one gateway; beyond it the connection idle for longest is closed, and streams wait",
    null,
  ),
  gateway_unread_bytes: limit(
    256 * MIB,
    "bytes",
    "the same for all principals at one gateway; connections of the principal with the most unread bytes are closed",
    null,
  ),
  stalled_seconds: limit(
    30,
    "seconds",
    "without a read, plus one second for each unread 64 KiB; then the connection is closed",
    null,
  ),
  reads: limit(
    2,
    "lists and pages",
    "of events or results read at once at one gateway for one principal, and six for all; further ones queue, principal by principal",
    null,
  ),
  reads_waiting: limit(1_000, "lists and pages", "queued at one gateway for one principal", "quota_exceeded"),
  pipelined: limit(
    64,
    "requests",
    "waiting on one connection for an earlier response; beyond it the connection is closed",
    null,
  ),
  buffered_events: limit(
    1_000,
    "events",
    "(or 4 MiB) buffered for a reader that falls behind; its stream is then closed, and it resumes by its cursor",
    null,
  ),
  agents: limit(10_000, "agents", "in one shard; existing agents can still be changed", "limit_reached"),
  tokens: limit(10_000, "tokens", "valid at a time, of all principals", "limit_reached"),
  login_sessions: limit(
    100,
    "sessions",
    "of one principal at a time, opened with `POST /v1/sessions`",
    "limit_reached",
  ),
  login_sessions_total: limit(
    10_000,
    "sessions",
    "of all principals at a time, about 600 bytes each (the operator is not bound by this limit)",
    "limit_reached",
  ),
  login_hours: limit(12, "hours", "a session lasts, unless its token ends earlier", "unauthenticated"),
  login_codes: limit(10, "codes", "unused, of one principal; a new one replaces the oldest", null),
  login_code_minutes: limit(10, "minutes", "a code may be used, once", "unauthenticated"),
  agent_bytes: limit(64 * KIB, "bytes", "the settings of one agent, as JSON", "invalid_request"),
  credentials_bytes: limit(
    8 * KIB,
    "bytes",
    "the credentials for the A2A server of one agent, as JSON",
    "invalid_request",
  ),
  workers: limit(
    1_000,
    "workers",
    "remembered for one agent; a list of its workers shows at most as many leases",
    null,
  ),
  worker_seconds: limit(86_400, "seconds", "a worker is remembered after its last poll", null),
  audit_entries: limit(
    10_000,
    "entries",
    "in the audit log by the operator, and as many by all others together; the oldest are dropped",
    null,
  ),
  audit_entry_bytes: limit(
    1 * KIB,
    "bytes",
    "the details of an audit entry, as JSON; larger details are omitted",
    null,
  ),
  audit_days: limit(90, "days", "an audit entry is kept at most", null),
  stats_subjects: limit(
    1_000,
    "agents and delegators",
    "per day have figures of their own (`GET /v1/stats`), at most about 150 kB each; others are counted only in the figures of all agents",
    null,
  ),
  stats_codes: limit(
    10,
    "codes",
    "of failures are counted by name in each bucket of the figures; others are counted as `other`",
    null,
  ),
} as const satisfies Record<string, Limit>;

export type LimitName = keyof typeof LIMITS;

/** Limits on the data in Redis, and on how long it is kept. */
export const AT_REST: readonly LimitName[] = [
  "delegation_bytes",
  "metadata_bytes",
  "auto_approve_bytes",
  "checkpoint_bytes",
  "delegation_events",
  "event_bytes",
  "pushes",
  "queued_calls",
  "children",
  "idempotency_hours",
  "void_minutes",
  "live_events",
  "live_bytes",
  "delegator_percent",
  "memory_new_work",
  "memory_ceiling",
  "ceiling_bytes",
  "agents",
  "agent_bytes",
  "credentials_bytes",
  "tokens",
  "login_sessions",
  "login_sessions_total",
  "login_hours",
  "login_codes",
  "login_code_minutes",
  "workers",
  "worker_seconds",
  "audit_entries",
  "audit_entry_bytes",
  "audit_days",
  "stats_subjects",
  "stats_codes",
];

/** Limits on what a gateway keeps in memory for its callers. */
export const IN_FLIGHT: readonly LimitName[] = [
  "body_bytes",
  "request_bytes",
  "gateway_request_bytes",
  "requests",
  "connections",
  "header_seconds",
  "request_seconds",
  "progress_per_second",
  "polls",
  "streams",
  "sessions",
  "session_seconds",
  "session_bytes",
  "unread_bytes",
  "gateway_unread_bytes",
  "stalled_seconds",
  "reads",
  "reads_waiting",
  "pipelined",
  "buffered_events",
];
