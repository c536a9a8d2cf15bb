/**
 * Every field of the stored record, and the layout of a stored event. The script's readers, the gateways' readers and
 * the docs are derived from it. Limit: a name or a line keeps its meaning, or the data gets another layout (redis/layout.ts).
 */
import * as z from "zod";
import { stateSchema } from "../schema/delegation.ts";

/** A stored value, as a script returns it; a number may be text. Empty text: the field is absent. */
export type Value = string | number;

interface Field<T = unknown> {
  readonly type: "number" | "instant" | "text" | "json";
  /**
   * Stored as a field of the hash, not in {@link PACKED}: because it can be large and a move writes all packed fields,
   * or because another delegation's move sets it.
   */
  readonly own?: true;
  /** Parses the stored value. Without `read`, gateways do not read the field. */
  readonly read?: (value: Value) => T;
  readonly doc: string;
}

/**
 * The field of the hash with all fields that are not `own`: a map by name, packed by Lua's cmsgpack. A field of the hash
 * costs about 60 bytes besides its value, and as text a number costs more to read and write.
 */
export const PACKED = "packed";

const number = <A extends number | null>(absent: A) => ({
  type: "number" as const,
  read: (value: Value): number | A => (value === "" ? absent : Number(value)),
});
const instant = <A extends number | null>(absent: A) => ({ ...number(absent), type: "instant" as const });
const text = <A extends string | null>(absent: A) => ({
  type: "text" as const,
  read: (value: Value): string | A => (value === "" ? absent : String(value)),
});
const own = { own: true as const };
const json = <A extends string | null>(absent: A) => ({ ...text(absent), type: "json" as const, ...own });
/** Read by the script alone. */
const NUMBER = { type: "number" as const };
const INSTANT = { type: "instant" as const };
const TEXT = { type: "text" as const };

const ancestorsSchema = z.array(z.tuple([z.string(), z.string()]));
/** Id and target. */
export type Ancestor = readonly [id: string, target: string];

/** Milliseconds since 1970 for an `instant`; JSON text for `json`. */
export const FIELDS = {
  // Identity and content.
  state: {
    type: "text",
    read: (value: Value) => stateSchema.parse(value),
    doc: "its state; absent: the key holds a mark, not a record",
  },
  version: { ...number(0), doc: "the number of its events" },
  target: { ...text(""), doc: "the agent that it is for" },
  delegator: { ...text(""), doc: "the principal that created it" },
  context_id: { ...text(""), doc: "the context that it belongs to" },
  parent_id: { ...text(null), doc: "the delegation under which it was created" },
  ancestors: {
    type: "json",
    ...own,
    read: (value: Value): readonly Ancestor[] => ancestorsSchema.parse(JSON.parse(String(value || "[]"))),
    doc: "the delegations above it, the root first: id and target of each",
  },
  root_id: { ...TEXT, doc: "the first of the delegations above it" },
  root_delegator: {
    ...text(null),
    doc: "the principal that created the first of the delegations above it, if it is another than its own delegator",
  },
  counted: {
    ...number(0),
    doc: "1: what it uses counts for the budgets of the root's delegator by day and month",
  },
  children: { ...NUMBER, doc: "1: delegations were created under it" },
  keeps_children: { ...number(0), doc: "1: its children go on if it does not complete" },
  priority: { ...number(5), doc: "0 to 9; higher goes first" },
  message: { ...json("null"), doc: "the message to the agent" },
  task_preview: { ...json('""'), doc: "the beginning of its text" },
  metadata: { ...json("{}"), doc: "the delegator's own members" },
  auto_approve: { ...json(null), doc: "which of its questions are approved in advance" },
  result_schema: { ...json(null), doc: "the JSON Schema that its result must fit" },
  has_result_schema: { ...NUMBER, doc: "1: it has a `result_schema`, so the result is checked" },
  traceparent: { ...text(null), doc: "the W3C trace context of the submit" },
  idempotency: { type: "text", doc: "the name of its idempotency key" },
  redrive_of: { ...text(null), doc: "the failed delegation that it repeats" },
  redriven_as: { ...text(null), doc: "the delegation that repeats this one" },
  redrive_erased: { type: "number", ...own, doc: "1: the delegation that repeats this one was erased" },
  // Times.
  created_at: { ...instant(0), doc: "when it was accepted" },
  updated_at: { ...instant(0), doc: "when its newest event was written" },
  not_before_at: { ...instant(null), doc: "when its delay ends" },
  deadline_at: { ...instant(0), doc: "its deadline" },
  start_by: { ...INSTANT, doc: "the deadline of its first lease" },
  finished_at: { ...instant(null), doc: "when it ended" },
  // Its tickets.
  ticket: { ...number(0), doc: "the number of its newest ticket" },
  ready_at: { ...INSTANT, doc: "when its newest ticket may be taken" },
  aged: { ...number(0), doc: "by how much its priority counts as higher, because it has waited" },
  age_at: { ...INSTANT, doc: "when it counts as one higher again; absent: never" },
  returned: { ...NUMBER, doc: "1: it is queued before new work of its priority" },
  sticky_ms: { ...NUMBER, doc: "how long the answer to the open question is kept for its asker" },
  others_at: { ...INSTANT, doc: "until when only one worker may take the ticket" },
  kept_for: { ...TEXT, doc: "that worker; absent: the one of the last lease" },
  check_at: {
    ...INSTANT,
    doc: "when the sweep checks that the ticket is in the queue, whether it is now the first in its line, or which children have ended",
  },
  // Its place among the delegations of its conversation.
  line: {
    ...NUMBER,
    doc: "its number in the line of its conversation; 0: it never joins one; absent: it has not joined yet",
  },
  behind: {
    ...text(null),
    doc: "the delegation before it in that line, for whose end it waits without a ticket; absent: it is the first, or is in no line",
  },
  last_ms: {
    ...NUMBER,
    doc: "how long after its reply the next ones of its conversation are kept for its worker",
  },
  // Its attempts and leases.
  attempt: { ...number(1), doc: "the number of its attempt, from 1" },
  max_attempts: { ...number(1), doc: "how many attempts it may take" },
  releases: { ...NUMBER, doc: "how often it was released" },
  handoffs: { ...NUMBER, doc: "how many of its leases did not reach their holder" },
  fence: { ...number(0), doc: "the number of its newest lease; 0: it was never leased" },
  nonce: { ...TEXT, doc: "identifies its newest lease if Redis' answer is lost" },
  worker_id: { ...text(""), doc: "the holder's name for itself" },
  lease_ms: { ...NUMBER, doc: "how far each call of the holder extends the lease" },
  lease_granted_at: { ...instant(null), doc: "when the lease was granted" },
  lease_expires_at: { ...instant(null), doc: "when the lease expires" },
  confirm_by: { ...INSTANT, doc: "the deadline of the holder's first call" },
  lapsed: { ...NUMBER, doc: "the fence of the newest lease, if it lapsed and may be reclaimed" },
  confirm_ms: { ...NUMBER, doc: "how long the holder has for its first call" },
  graces: {
    ...NUMBER,
    doc: "how many outages of the broker have extended the lease since the holder's last call",
  },
  ends: { ...TEXT, doc: "one letter for each ended lease: why it ended" },
  closed_by: { ...NUMBER, doc: "the fence of the reply that closed the newest lease" },
  reply_hash: { ...TEXT, doc: "the hash of that reply" },
  // Sent by its agent.
  progress: { ...json("null"), doc: "the newest progress" },
  checkpoint: {
    ...json(null),
    doc: "what a holder stores for the next one; its agent and the operator see it",
  },
  usage: { ...json(null), doc: "what its newest attempts have used; lua/lazy/usage.lua has its layout" },
  used: { ...text(null), doc: "what all its attempts have used together, as JSON" },
  // Its budget.
  budget: {
    ...text(null),
    doc: "as JSON, how much its tree may use, and has used; lua/lazy/budget.lua has its layout",
  },
  over_at: { ...INSTANT, doc: "when its worker is to learn that it used more than its budget" },
  stop_at: { ...instant(null), doc: "when it fails for its budget, or the broker asks for a larger one" },
  spends: { ...NUMBER, doc: "1: what its tree has used is to be reported to its parent" },
  reply: { ...json("null"), doc: "the agent's reply" },
  a2a_form: {
    ...text(null),
    doc: "`message`: it was answered with a bare A2A Message, and nothing of the work was shown before; `task`: with any other A2A object; absent: not in A2A's form",
  },
  error: { ...json(null), doc: "the error that it failed with" },
  artifact_bytes: { ...NUMBER, doc: "bytes of its artifacts" },
  artifact_fence: { ...NUMBER, doc: "the fence of the newest chunk" },
  places: { ...NUMBER, doc: "how many places artifacts have used; a place is never reused" },
  // Its questions.
  interrupt: { ...json(null), doc: "the open question" },
  interrupt_id: { ...TEXT, doc: "the id of the open question" },
  interrupt_raised_at: { ...instant(null), doc: "when the question was asked" },
  interrupt_expires_at: { ...instant(null), doc: "the deadline of the answer" },
  votes_needed: {
    ...number(null),
    doc: "how many approvals the open question needed when it was asked, or at its newest vote; absent: its first answer counts",
  },
  votes: {
    ...text(null),
    doc: "as JSON, the votes of the open question: who approved, by which way and when",
  },
  votes_seen: {
    ...NUMBER,
    doc: "identifies the agent's `votes` at the newest vote; under it, all votes count",
  },
  ballot_hash: { ...TEXT, doc: "hash of the ballot" },
  ballot: { ...json(null), doc: "what the votes approve: the answers by request id" },
  answered: { ...number(0), doc: "how many questions were answered" },
  settled: {
    type: "text",
    ...own,
    doc: "a line for each question that was answered or expired: the numbers of the event that settled it and of its own",
  },
  secret_bytes: { ...NUMBER, doc: "bytes of the secret answers" },
  // Its wait for children.
  awaits: { ...json(null), doc: "the ids of the children that it waits for, or waited for last" },
  awaits_left: { ...number(0), doc: "how many of them must still end" },
  awaits_since: { ...INSTANT, doc: "when the wait began" },
  awaits_until: { ...instant(null), doc: "when it no longer waits" },
  wait_hash: { ...TEXT, doc: "identifies the wait: a hash of its children and of how many must end" },
  awaits_over: { ...number(0), doc: "1: the newest wait ended by its time limit" },
  expected: { ...NUMBER, doc: "1: its parent waits, or once waited, for its end" },
  // Its messages and limits.
  spoken: { ...NUMBER, doc: "1: it has a history" },
  unseen: { ...NUMBER, doc: "how many follow-ups its holder has not seen" },
  bytes: { ...number(0), doc: "bytes of message, history, artifacts and reply" },
  event_bytes: { ...NUMBER, doc: "bytes of its events, bodies excluded" },
  kept: { ...NUMBER, doc: "about how many bytes it takes of its delegator's share" },
  pace_at: { ...INSTANT, doc: "the start of the second in which updates are counted" },
  pace_count: { ...NUMBER, doc: "the number of updates in that second" },
  // Pending deliveries.
  callback: { ...json(null), doc: "where to call back, with its secrets; never shown" },
  callbacks: { ...NUMBER, doc: "who gets its events: 1 its callback, 2 push configs, 3 both" },
  push_bytes: { ...NUMBER, doc: "bytes of its push configs" },
  notify_seq: { ...number(0), doc: "the newest event for a callback or push config" },
  notified_seq: { ...number(0), doc: "the newest of those that was queued" },
  calls_at: {
    ...INSTANT,
    doc: "when the sweep looks whether queued calls have lost their jobs; absent: none is left",
  },
  orphaned: {
    ...number(0),
    doc: "1: it ended without its agent's reply, and the task at the agent's A2A server is still to be canceled",
  },
  cascade: { ...TEXT, doc: "the principal in whose name its children are to be canceled" },
  cascade_all: {
    ...NUMBER,
    doc: "1: also what is under children that keep theirs, and under children that have ended",
  },
  expecting: {
    ...number(0),
    doc: "the fence of the lease that began to wait, until the children are known to report their ends",
  },
  reports: { ...NUMBER, doc: "1: its end is to be reported to its parent" },
  follow_at: { ...INSTANT, doc: "when the sweep takes over the pending deliveries" },
  event_id: { ...text("0-0"), doc: "the stream id of its newest event" },
  unpublished: { ...NUMBER, doc: "1: events wait to be published" },
} as const satisfies Record<string, Field>;

/** Fields whose names contain an id; the script and the gateways read them one by one. */
export const KEYED_FIELDS = {
  "asked:<fence>":
    "the question that this lease asked: its id, the hash of the reply and the number of its event",
  "said:<message_id>": "the hash of a stored follow-up",
  "answer:<interrupt_id>": "the answers to a question, unless they are secret",
  "voted:<interrupt_id>":
    "a line for each vote: who gave it, and a hash of its content, by which a repeat is recognized",
  "answer_hash:<interrupt_id>":
    "the hash by which a repeat of the answer is recognized: of its content, or for an `auth` question and by a link of its principal and request key",
  "used:<interrupt_id>:<request_id>": "which call has used the answer: the fence of its lease and its key",
  "over:<wait_hash>": "how often this wait ended by its time limit",
  "notify:<seq>": "the stream id of an event for the callback, until the call is made or given up",
} as const;

/** Fields of a mark, which is stored in place of a record so that no record with this id is created; it expires. */
export const MARKS = {
  deleted: "1: the delegation was deleted",
  voided: "1: another body took its idempotency key",
} as const;

type Fields = typeof FIELDS;
export type FieldName = keyof Fields;
export type NumberField = {
  [N in FieldName]: Fields[N] extends { type: "number" | "instant" } ? N : never;
}[FieldName];
export type ReadName = {
  [N in FieldName]: Fields[N] extends { read: (value: Value) => unknown } ? N : never;
}[FieldName];
export type ReadFields = { readonly [N in ReadName]: ReturnType<Fields[N]["read"]> };
/** Something with stored fields. A field is parsed each time it is read. */
export interface Readable<N extends ReadName> {
  get<K extends N>(name: K): ReadFields[K];
}
/** The parsers of {@link FIELDS}, in a type that keeps the name and the type of a field together. */
export const READERS: { readonly [N in ReadName]: { readonly read: (value: Value) => ReadFields[N] } } =
  FIELDS;
export type OwnField = { [N in FieldName]: Fields[N] extends { own: true } ? N : never }[FieldName];

const isField = (name: string): name is FieldName => name in FIELDS;
const FIELD_NAMES = Object.keys(FIELDS).filter(isField);
const isRead = (name: FieldName): name is ReadName => "read" in FIELDS[name];
export const isPacked = (name: FieldName): boolean => !("own" in FIELDS[name]);
export const PACKED_NAMES = FIELD_NAMES.filter(isPacked);
/** The fields that the gateways read, in the order in which scripts return them. */
export const READ_NAMES = [
  ...FIELD_NAMES.filter(isRead).filter(isPacked),
  ...FIELD_NAMES.filter(isRead).filter((name) => !isPacked(name)),
];

/**
 * In the script's answer to a command, the text of an own field that the command itself stored: its gateway has the text,
 * and it may be long. No JSON text is equal to it.
 */
export const GIVEN = "=";

/** The values of {@link READ_NAMES} as the script answered them, with the texts that the command gave. */
export const withGiven = (
  values: readonly string[],
  given: Readonly<Partial<Record<FieldName, string | undefined>>>,
): readonly string[] =>
  values.map((value, at) => {
    const name = READ_NAMES[at];
    // A packed text may have any value.
    return value === GIVEN && name !== undefined && !isPacked(name) ? (given[name] ?? "") : value;
  });

/** A stored event is one text of these lines; JSON text has no line breaks. `lua` is its expression in the script. */
export const EVENT_LINES = {
  type: { lua: "rule.event", doc: "the event's type" },
  delegation_id: { lua: "cmd.id", doc: "its delegation" },
  seq: { lua: "digits(record.version)", doc: "its number in the delegation, from 1" },
  at: { lua: "digits(now)", doc: "when the move was made, ms" },
  state: { lua: "record.state", doc: "the state that the move led to" },
  status: { lua: "status", doc: "the kind of change; empty if the delegation ended" },
  target: { lua: "record.target", doc: "as in the record" },
  delegator: { lua: "record.delegator", doc: "as in the record" },
  context_id: { lua: "record.context_id", doc: "as in the record" },
  created_at: { lua: "digits(record.created_at)", doc: "as in the record" },
  more: { lua: "more", doc: "further members, JSON without braces" },
  refs: {
    lua: "refs",
    doc: "with artifacts: the bytes of their bodies, the member that shows them, and artifact, place and number of each chunk",
  },
} as const;
export type EventLine = keyof typeof EVENT_LINES;
export const EVENT_LINE_NAMES: readonly string[] = Object.keys(EVENT_LINES);
