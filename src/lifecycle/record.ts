/**
 * The stored record and how it is shown: stored JSON is spliced into the answer as it stands, not parsed.
 * Limit: reads what transition.lua wrote and trusts it.
 */
import { z } from "zod";
import type { Redis } from "../redis/connect.ts";
import { Script } from "../redis/script.ts";
import type { Shards } from "../redis/shards.ts";
import { artifactSchema } from "../schema/a2a.ts";
import { isTerminal, type State, stateSchema } from "../schema/delegation.ts";
import { toInstant } from "../schema/values.ts";

export interface StoredDelegation {
  readonly id: string;
  readonly state: State;
  readonly version: number;
  readonly target: string;
  readonly delegator: string;
  readonly attempt: number;
  readonly fence: number;
  readonly ticket: number;
  readonly priority: number;
  readonly created_at: number;
  readonly not_before_at: number | null;
  readonly deadline_at: number;
  readonly lease_expires_at: number | null;
  /** The message's JSON text. */
  readonly message: string;
  readonly context_id: string;
  readonly parent_id: string | null;
  /** The delegations above it, the root first: id and target each. */
  readonly ancestors: readonly Ancestor[];
  readonly max_attempts: number;
  /** JSON text of the caller's own members. */
  readonly metadata: string;
  /** JSON text of the open question; null when none is. */
  readonly interrupt: string | null;
  /** Questions answered so far. */
  readonly answered: number;
  /** JSON texts of messages, oldest first; an element may hold several, comma separated. */
  readonly history: readonly string[];
  /** JSON text of where to call back, with its secrets; never shown. */
  readonly callback: string | null;
  /** Sequence numbers of the newest of them, and of the newest that is queued. */
  readonly notify_seq: number;
  readonly notified_seq: number;
  readonly redriven_as: string | null;
  readonly traceparent: string | null;
  /** JSON text of what the last holder kept for the next; shown to its agent and the operator alone. */
  readonly checkpoint: string | null;
  /** The error's JSON text. */
  readonly error: string | null;
  readonly finished: boolean;
  /** Stream id of its newest event: the cursor at which this snapshot was read. */
  readonly event_id: string;
  /** The delegation as it is shown, as JSON text. */
  readonly json: string;
}

/** As it stands in Redis, with what only callbacks need. */
export interface ReadDelegation extends StoredDelegation {
  /** The events to call back with: sequence number to stream id. */
  readonly notify: ReadonlyMap<number, string>;
}

/**
 * The record's fields that are shown or worked with outside the script. It tells them in this order, one a line: numbers,
 * words and JSON text, which have no line breaks.
 */
export const SHOWN = [
  "ancestors",
  "answered",
  "attempt",
  "callback",
  "checkpoint",
  "context_id",
  "created_at",
  "deadline_at",
  "delegator",
  "error",
  "event_id",
  "fence",
  "finished_at",
  "interrupt",
  "interrupt_expires_at",
  "interrupt_raised_at",
  "lease_expires_at",
  "lease_granted_at",
  "max_attempts",
  "message",
  "metadata",
  "not_before_at",
  "notified_seq",
  "notify_seq",
  "parent_id",
  "priority",
  "progress",
  "redrive_of",
  "redriven_as",
  "reply",
  "state",
  "target",
  "task_preview",
  "ticket",
  "traceparent",
  "updated_at",
  "version",
  "worker_id",
] as const;
type Raw = ReadonlyMap<(typeof SHOWN)[number], string>;

const ancestorsSchema = z.array(z.tuple([z.string(), z.string()]));
/** Id and target. */
export type Ancestor = readonly [id: string, target: string];

const NUMBER = (value: string | undefined): number | null => (value ? Number(value) : null);
const INSTANT = (value: string | undefined): string => (value ? `"${toInstant(Number(value))}"` : "null");
const TEXT = (value: string | undefined): string => (value ? JSON.stringify(value) : "null");

function interruptJson(raw: Raw): string {
  const interrupt = raw.get("interrupt");
  if (!interrupt) return "null";
  const raised = INSTANT(raw.get("interrupt_raised_at"));
  return `{"raised_at":${raised},"expires_at":${INSTANT(raw.get("interrupt_expires_at"))},${interrupt.slice(1)}`;
}

function leaseJson(raw: Raw): string {
  if (raw.get("state") !== "working") return "null";
  const granted = INSTANT(raw.get("lease_granted_at"));
  const expires = INSTANT(raw.get("lease_expires_at"));
  return `{"worker_id":${JSON.stringify(raw.get("worker_id") ?? "")},"granted_at":${granted},"expires_at":${expires}}`;
}

/** What stands beside the hash. */
export interface Lists {
  /** Chunks of comma separated JSON. */
  readonly history: readonly string[];
  /** The hash of artifacts, as transition.lua keeps it. */
  readonly artifacts: ReadonlyMap<string, string>;
}

/** Artifacts by their places, each put together from its chunks. */
function artifactsJson(stored: ReadonlyMap<string, string>): string {
  const places: string[][] = [];
  for (const [name, json] of stored) {
    const [, place, number] = /^(\d+):(\d+)$/.exec(name)?.map(Number) ?? [];
    if (place === undefined || number === undefined) continue;
    places[place] ??= [];
    places[place][number] = json;
  }
  return `[${places.flatMap((chunks) => wholeJson(chunks.flat())).join(",")}]`;
}

function wholeJson(chunks: readonly string[]): string {
  if (chunks.length === 1) return chunks[0] ?? "";
  const artifacts = z.array(artifactSchema).parse(JSON.parse(`[${chunks.join(",")}]`));
  const parts = artifacts.flatMap((artifact) => artifact.parts);
  const members: Record<string, unknown> = Object.assign({}, ...artifacts);
  return JSON.stringify({ ...members, parts });
}

function toJson(id: string, raw: Raw, lists: Lists): string {
  const members: [string, string][] = [
    ["id", JSON.stringify(id)],
    ["state", TEXT(raw.get("state"))],
    ["version", raw.get("version") ?? "0"],
    ["target", TEXT(raw.get("target"))],
    ["delegator", TEXT(raw.get("delegator"))],
    ["context_id", TEXT(raw.get("context_id"))],
    ["parent_id", TEXT(raw.get("parent_id"))],
    ["redrive_of", TEXT(raw.get("redrive_of"))],
    ["priority", raw.get("priority") ?? "5"],
    ["metadata", raw.get("metadata") || "{}"],
    ["task_preview", raw.get("task_preview") || '""'],
    ["message", raw.get("message") || "null"],
    ["progress", raw.get("progress") || "null"],
    ["interrupt", interruptJson(raw)],
    ["artifacts", artifactsJson(lists.artifacts)],
    ["reply", raw.get("reply") || "null"],
    ["error", raw.get("error") || "null"],
    ["attempt", raw.get("attempt") ?? "1"],
    ["max_attempts", raw.get("max_attempts") ?? "1"],
    ["lease", leaseJson(raw)],
    ["history", `[${lists.history.join(",")}]`],
    ["created_at", INSTANT(raw.get("created_at"))],
    ["updated_at", INSTANT(raw.get("updated_at"))],
    ["not_before_at", INSTANT(raw.get("not_before_at"))],
    ["deadline_at", INSTANT(raw.get("deadline_at"))],
    ["finished_at", INSTANT(raw.get("finished_at"))],
  ];
  return `{${members.map(([name, json]) => `"${name}":${json}`).join(",")}}`;
}

function toStored(id: string, raw: Raw, lists: Lists): StoredDelegation {
  const state = stateSchema.parse(raw.get("state"));
  let json: string | undefined;
  return {
    id,
    state,
    version: Number(raw.get("version")),
    target: raw.get("target") ?? "",
    delegator: raw.get("delegator") ?? "",
    attempt: Number(raw.get("attempt")),
    fence: Number(raw.get("fence")),
    ticket: Number(raw.get("ticket")),
    priority: Number(raw.get("priority")),
    created_at: Number(raw.get("created_at")),
    not_before_at: NUMBER(raw.get("not_before_at")),
    deadline_at: Number(raw.get("deadline_at")),
    lease_expires_at: NUMBER(raw.get("lease_expires_at")),
    message: raw.get("message") ?? "null",
    context_id: raw.get("context_id") ?? "",
    parent_id: raw.get("parent_id") || null,
    get ancestors() {
      return ancestorsSchema.parse(JSON.parse(raw.get("ancestors") || "[]"));
    },
    max_attempts: Number(raw.get("max_attempts") ?? 1),
    metadata: raw.get("metadata") || "{}",
    interrupt: raw.get("interrupt") || null,
    answered: Number(raw.get("answered") ?? 0),
    history: lists.history,
    callback: raw.get("callback") || null,
    notify_seq: Number(raw.get("notify_seq") ?? 0),
    notified_seq: Number(raw.get("notified_seq") ?? 0),
    redriven_as: raw.get("redriven_as") || null,
    traceparent: raw.get("traceparent") || null,
    checkpoint: raw.get("checkpoint") || null,
    error: raw.get("error") || null,
    finished: isTerminal(state),
    event_id: raw.get("event_id") ?? "0-0",
    get json() {
      json ??= toJson(id, raw, lists);
      return json;
    },
  };
}

/** A hash, from the flat array that a script returns. */
export function toFields(flat: readonly string[]): Map<string, string> {
  const fields = new Map<string, string>();
  for (let i = 0; i + 1 < flat.length; i += 2) fields.set(flat[i] ?? "", flat[i + 1] ?? "");
  return fields;
}

/** From what the script tells: {@link SHOWN}, one a line. */
export function storedFromLines(id: string, lines: string, lists: Lists): StoredDelegation {
  const values = lines.split("\n");
  return toStored(
    id,
    toRaw((_, at) => values[at]),
    lists,
  );
}

function toRaw(find: (name: string, at: number) => string | undefined): Raw {
  const raw = new Map<(typeof SHOWN)[number], string>();
  for (let at = 0; at < SHOWN.length; at += 1) {
    const name = SHOWN[at];
    const value = name && find(name, at);
    if (name && value) raw.set(name, value);
  }
  return raw;
}

/** KEYS: the record, its history, its artifacts. One script: read one by one, they may be of different moments. */
const readScript = new Script(`#!lua flags=no-writes
return { redis.call('HGETALL', KEYS[1]), redis.call('LRANGE', KEYS[2], 0, -1), redis.call('HGETALL', KEYS[3]) }`);

const textsSchema = z.array(z.string());
const readSchema = z.tuple([textsSchema, textsSchema, textsSchema]);

/** Reads a record as it is at one moment; null when there is none (unknown, or gone after the retention time). */
export async function readRecord(redis: Redis, shards: Shards, id: string): Promise<ReadDelegation | null> {
  const keys = shards.ofId(id);
  if (!keys) return null;
  const names = [keys.delegation(id), keys.history(id), keys.artifacts(id)];
  const [flat, history, artifacts] = readSchema.parse(await readScript.run(redis, names, []));
  if (flat.length === 0) return null;
  const fields = toFields(flat);
  const stored = toStored(
    id,
    toRaw((name) => fields.get(name)),
    { history, artifacts: toFields(artifacts) },
  );
  const notify = [...fields].filter(([name]) => name.startsWith("notify:"));
  return Object.assign(stored, {
    notify: new Map(notify.map(([name, event_id]) => [Number(name.slice("notify:".length)), event_id])),
  });
}
