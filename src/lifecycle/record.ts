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
  /** The same record with another history. */
  withHistory(history: readonly string[]): StoredDelegation;
}

/** As it stands in Redis, with what only callbacks need. */
export interface ReadDelegation extends StoredDelegation {
  /** The events to call back with: sequence number to stream id. */
  readonly notify: ReadonlyMap<number, string>;
}

/**
 * The record's fields that are shown or worked with outside the script, each with its line: it tells them one a line,
 * numbers, words and JSON text, which have no line breaks.
 */
const LINE = {
  ancestors: 0,
  answered: 1,
  attempt: 2,
  callback: 3,
  checkpoint: 4,
  context_id: 5,
  created_at: 6,
  deadline_at: 7,
  delegator: 8,
  error: 9,
  event_id: 10,
  fence: 11,
  finished_at: 12,
  interrupt: 13,
  interrupt_expires_at: 14,
  interrupt_raised_at: 15,
  lease_expires_at: 16,
  lease_granted_at: 17,
  max_attempts: 18,
  message: 19,
  metadata: 20,
  not_before_at: 21,
  notified_seq: 22,
  notify_seq: 23,
  parent_id: 24,
  priority: 25,
  progress: 26,
  redrive_of: 27,
  redriven_as: 28,
  reply: 29,
  state: 30,
  target: 31,
  task_preview: 32,
  ticket: 33,
  traceparent: 34,
  updated_at: 35,
  version: 36,
  worker_id: 37,
} as const;
/** Their names, in the order of their lines. */
export const SHOWN: readonly string[] = Object.keys(LINE);

const ancestorsSchema = z.array(z.tuple([z.string(), z.string()]));
/** Id and target. */
export type Ancestor = readonly [id: string, target: string];

const INSTANT = (value: string): string => (value === "" ? "null" : `"${toInstant(Number(value))}"`);
const TEXT = (value: string): string => (value === "" ? "null" : JSON.stringify(value));

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

/** One record, over its lines: what nobody asks for is not made. */
class Stored implements StoredDelegation {
  readonly id: string;
  readonly state: State;
  readonly finished: boolean;
  readonly #lines: readonly string[];
  readonly #lists: Lists;
  #json: string | undefined;

  constructor(id: string, lines: readonly string[], lists: Lists) {
    this.id = id;
    this.#lines = lines;
    this.#lists = lists;
    this.state = stateSchema.parse(this.#text(LINE.state));
    this.finished = isTerminal(this.state);
  }

  /** Empty where there is none. */
  #text(line: number): string {
    return this.#lines[line] ?? "";
  }

  #number(line: number, absent = 0): number {
    const text = this.#text(line);
    return text === "" ? absent : Number(text);
  }

  get version(): number {
    return this.#number(LINE.version);
  }
  get target(): string {
    return this.#text(LINE.target);
  }
  get delegator(): string {
    return this.#text(LINE.delegator);
  }
  get attempt(): number {
    return this.#number(LINE.attempt);
  }
  get fence(): number {
    return this.#number(LINE.fence);
  }
  get ticket(): number {
    return this.#number(LINE.ticket);
  }
  get priority(): number {
    return this.#number(LINE.priority);
  }
  get created_at(): number {
    return this.#number(LINE.created_at);
  }
  get not_before_at(): number | null {
    return this.#number(LINE.not_before_at) || null;
  }
  get deadline_at(): number {
    return this.#number(LINE.deadline_at);
  }
  get lease_expires_at(): number | null {
    return this.#number(LINE.lease_expires_at) || null;
  }
  get message(): string {
    return this.#text(LINE.message) || "null";
  }
  get context_id(): string {
    return this.#text(LINE.context_id);
  }
  get parent_id(): string | null {
    return this.#text(LINE.parent_id) || null;
  }
  get ancestors(): readonly Ancestor[] {
    return ancestorsSchema.parse(JSON.parse(this.#text(LINE.ancestors) || "[]"));
  }
  get max_attempts(): number {
    return this.#number(LINE.max_attempts, 1);
  }
  get metadata(): string {
    return this.#text(LINE.metadata) || "{}";
  }
  get interrupt(): string | null {
    return this.#text(LINE.interrupt) || null;
  }
  get answered(): number {
    return this.#number(LINE.answered);
  }
  get history(): readonly string[] {
    return this.#lists.history;
  }
  get callback(): string | null {
    return this.#text(LINE.callback) || null;
  }
  get notify_seq(): number {
    return this.#number(LINE.notify_seq);
  }
  get notified_seq(): number {
    return this.#number(LINE.notified_seq);
  }
  get redriven_as(): string | null {
    return this.#text(LINE.redriven_as) || null;
  }
  get traceparent(): string | null {
    return this.#text(LINE.traceparent) || null;
  }
  get checkpoint(): string | null {
    return this.#text(LINE.checkpoint) || null;
  }
  get error(): string | null {
    return this.#text(LINE.error) || null;
  }
  get event_id(): string {
    return this.#text(LINE.event_id) || "0-0";
  }
  get json(): string {
    this.#json ??= this.#toJson();
    return this.#json;
  }

  withHistory(history: readonly string[]): StoredDelegation {
    return new Stored(this.id, this.#lines, { ...this.#lists, history });
  }

  #toJson(): string {
    const text = (line: number) => TEXT(this.#text(line));
    const instant = (line: number) => INSTANT(this.#text(line));
    const json = (line: number, absent = "null") => this.#text(line) || absent;
    return (
      `{"id":"${this.id}","state":"${this.state}","version":${this.version},` +
      `"target":${text(LINE.target)},"delegator":${text(LINE.delegator)},` +
      `"context_id":${text(LINE.context_id)},"parent_id":${text(LINE.parent_id)},` +
      `"redrive_of":${text(LINE.redrive_of)},"priority":${json(LINE.priority, "5")},` +
      `"metadata":${json(LINE.metadata, "{}")},"task_preview":${json(LINE.task_preview, '""')},` +
      `"message":${json(LINE.message)},"progress":${json(LINE.progress)},` +
      `"interrupt":${this.#interruptJson()},"artifacts":${artifactsJson(this.#lists.artifacts)},` +
      `"reply":${json(LINE.reply)},"error":${json(LINE.error)},` +
      `"attempt":${json(LINE.attempt, "1")},"max_attempts":${json(LINE.max_attempts, "1")},` +
      `"lease":${this.#leaseJson()},"history":[${this.#lists.history.join(",")}],` +
      `"created_at":${instant(LINE.created_at)},"updated_at":${instant(LINE.updated_at)},` +
      `"not_before_at":${instant(LINE.not_before_at)},"deadline_at":${instant(LINE.deadline_at)},` +
      `"finished_at":${instant(LINE.finished_at)}}`
    );
  }

  #interruptJson(): string {
    const interrupt = this.#text(LINE.interrupt);
    if (interrupt === "") return "null";
    const raised = INSTANT(this.#text(LINE.interrupt_raised_at));
    const expires = INSTANT(this.#text(LINE.interrupt_expires_at));
    return `{"raised_at":${raised},"expires_at":${expires},${interrupt.slice(1)}`;
  }

  #leaseJson(): string {
    if (this.state !== "working") return "null";
    const worker = JSON.stringify(this.#text(LINE.worker_id));
    const granted = INSTANT(this.#text(LINE.lease_granted_at));
    return `{"worker_id":${worker},"granted_at":${granted},"expires_at":${INSTANT(this.#text(LINE.lease_expires_at))}}`;
  }
}

/** A hash, from the flat array that a script returns. */
export function toFields(flat: readonly string[]): Map<string, string> {
  const fields = new Map<string, string>();
  for (let i = 0; i + 1 < flat.length; i += 2) fields.set(flat[i] ?? "", flat[i + 1] ?? "");
  return fields;
}

/** From what the script tells: {@link SHOWN}, one a line. */
export const storedFromLines = (id: string, lines: string, lists: Lists): StoredDelegation =>
  new Stored(id, lines.split("\n"), lists);

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
  const fields = toFields(flat);
  // Without a state it is only the mark of a deleted or voided delegation.
  if (!fields.has("state")) return null;
  const lines = SHOWN.map((name) => fields.get(name) ?? "");
  const stored = new Stored(id, lines, { history, artifacts: toFields(artifacts) });
  const notify = [...fields].filter(([name]) => name.startsWith("notify:"));
  return Object.assign(stored, {
    notify: new Map(notify.map(([name, event_id]) => [Number(name.slice("notify:".length)), event_id])),
  });
}
