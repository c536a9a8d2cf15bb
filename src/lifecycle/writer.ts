/**
 * The only way to move a delegation: it sends a typed command to the script and returns one of a closed set of
 * outcomes. Limit: a refusal is an outcome, never an exception; engine/errors.ts turns it into the caller's error.
 */
import { z } from "zod";
import type { Redis } from "../redis/connect.ts";
import { isOutOfMemory } from "../redis/errors.ts";
import type { ShardKeys } from "../redis/keys.ts";
import type { Shards } from "../redis/shards.ts";
import type { Artifact } from "../schema/a2a.ts";
import { stateSchema } from "../schema/delegation.ts";
import { LEASE_LOST_REASONS } from "../schema/lease.ts";
import { LIMITS } from "../schema/limits.ts";
import { wellFormedJson } from "../schema/text.ts";
import { type StoredDelegation, storedFromLines, toFields } from "./record.ts";
import { growingScript, inFlightScript } from "./script.ts";
import { MOVE_NAMES, MOVES, type Move, type MoveName } from "./states.ts";

/** Milliseconds added to Redis' clock; 0 in production, changed by tests. */
export interface Clock {
  readonly offset_ms: number;
}

/** A chunk of an artifact: it replaces the artifact with its id, or is appended to it. */
export interface Chunk {
  readonly artifact: Artifact;
  readonly append?: boolean | undefined;
}

export interface Command {
  /**
   * A move of the table; or `due`: the move whose timer has passed, if any; or `erase`: deletes a finished record and
   * its events.
   */
  readonly move: MoveName | "due" | "erase";
  readonly id: string;
  /** The move's parameters: numbers and short strings; see lua/main.lua. */
  readonly params?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Members for the event: JSON text by name. */
  readonly event?: Readonly<Record<string, string | undefined>>;
  /** JSON messages for the history. */
  readonly history?: readonly string[];
  readonly artifacts?: readonly Chunk[];
  /** The event's member that shows the artifacts; absent: the event shows none. */
  readonly shows?: "artifact" | "artifacts" | undefined;
  /** Bytes of the bodies among `fields`; those of messages and artifacts are counted separately. */
  readonly bytes?: number;
  /** Fields to set in the record: text by name, JSON where the field is JSON. */
  readonly fields?: Readonly<Record<string, string | undefined>>;
  /** Return the record as it is after the move (or the refusal). */
  readonly read?: boolean;
}

const base = z.object({
  now: z.number(),
  /** The delegation of the ticket that was taken. */
  id: z.string().optional(),
  state: stateSchema.optional(),
  version: z.number().optional(),
  target: z.string().optional(),
  ticket: z.number().optional(),
  fence: z.number().optional(),
  attempt: z.number().optional(),
  created_at: z.number().optional(),
});
const live = base.required().extend({ id: z.string().optional() });

/** Events up to `seq` are undelivered; `to`: 1 the callback, 2 the push configs, 3 both. */
const pending_events = z.object({ seq: z.number(), to: z.int().min(1).max(3) });
export type PendingEvents = z.infer<typeof pending_events>;

/** The limits of one delegation that do not reset with time. */
const CAPS = ["delegation_events", "event_bytes", "pushes", "children"] as const;

export const outcomeSchema = z.discriminatedUnion("kind", [
  live.extend({
    kind: z.literal("ok"),
    move: z.enum(MOVE_NAMES),
    event_id: z.string().optional(),
    ready_at: z.number().optional(),
    priority: z.number().optional(),
    returned: z.boolean().optional(),
    old_ticket: z.number().optional(),
    /** True: its new ticket is in the queue. False: the queue refused it, and the caller must add it. */
    ticketed: z.boolean().optional(),
    lease_expires_at: z.number().optional(),
    /**
     * The move only extended the lease: the delegation is at a limit, or memory is short, so the progress was dropped.
     */
    progress_dropped: z.literal(true).optional(),
    /** Its children must be canceled, in the name of this principal. */
    cascade: z.string().optional(),
    /** When the sweep takes over the pending deliveries, unless the claim is extended. */
    claimed_until: z.number().optional(),
    pending_events: pending_events.optional(),
    /** With a lease: the answers to `auth` questions, as the script stores them; only for the holder. */
    secrets: z.array(z.string()).optional(),
  }),
  base.extend({ kind: z.literal("missing") }),
  base.extend({ kind: z.literal("no_agent") }),
  base.extend({ kind: z.literal("full") }),
  /** The delegator's delegations in this shard keep `kept` bytes; with this one they would keep more than `most`. */
  base.extend({ kind: z.literal("share"), kept: z.number(), most: z.number() }),
  live.extend({ kind: z.literal("exists") }),
  live.extend({ kind: z.literal("state") }),
  live.extend({ kind: z.literal("lease"), reason: z.enum(LEASE_LOST_REASONS).optional() }),
  live.extend({ kind: z.literal("no_lease") }),
  live.extend({
    kind: z.literal("duplicate"),
    interrupt_id: z.string().optional(),
    /** With a repeated chunk. */
    lease_expires_at: z.number().optional(),
  }),
  /** The last chunk has the same `chunk_id` but another body. */
  live.extend({ kind: z.literal("chunk") }),
  /** The question was answered before; `answers` is their JSON text. */
  live.extend({ kind: z.literal("answered"), answers: z.string() }),
  live.extend({ kind: z.literal("redriven"), redriven_as: z.string() }),
  live.extend({
    kind: z.literal("pending"),
    cascade: z.string().optional(),
    claimed_until: z.number().optional(),
    pending_events: pending_events.optional(),
  }),
  live.extend({ kind: z.literal("ticket") }),
  live.extend({ kind: z.literal("not_ready"), ready_at: z.number() }),
  base.extend({ kind: z.literal("blocked"), why: z.enum(["paused", "max_working"]) }),
  /** No ticket is ready; when the next delayed one is due, ms by Redis' own clock. */
  base.extend({ kind: z.literal("empty"), next_due_at: z.number().optional() }),
  live.extend({ kind: z.literal("interrupt") }),
  live.extend({ kind: z.literal("attempts") }),
  live.extend({ kind: z.literal("not_due") }),
  live.extend({ kind: z.literal("check") }),
  /** Its parent was canceled before it was created. */
  base.extend({ kind: z.literal("tombstone") }),
  base.extend({ kind: z.literal("too_large") }),
  /** Memory is short, and the move would use more. */
  base.extend({ kind: z.literal("memory") }),
  /** The delegation has reached this limit. */
  live.extend({ kind: z.literal("limit"), limit: z.enum(CAPS) }),
  live.extend({ kind: z.literal("pace") }),
  live.extend({ kind: z.literal("removed") }),
  /** Another gateway has taken over the pending deliveries, or made them. */
  live.extend({ kind: z.literal("taken_over") }),
  /** Before the record can be deleted, the idempotency key with this name must be retired. */
  live.extend({ kind: z.literal("retire_key"), idempotency: z.string() }),
  /** This id cannot be used: another body took its idempotency key. */
  base.extend({ kind: z.literal("voided") }),
  /** The delegation of this id was deleted. */
  base.extend({ kind: z.literal("deleted") }),
]);
export type Outcome = z.infer<typeof outcomeSchema>;
export type Moved = Extract<Outcome, { kind: "ok" }>;

/** Outcome, record, history, artifacts, unseen follow-ups; then the answer of the taker, if there was one. */
type Reply = readonly [
  json: string,
  record: string,
  history: readonly string[],
  artifacts: readonly string[],
  unseen: readonly string[],
  taken?: readonly unknown[],
];

/**
 * The answer comes from our own script, so a schema checks only the outcome, and the lists are only checked to be lists.
 */
function isReply(answer: unknown): answer is Reply {
  if (!Array.isArray(answer)) return false;
  const [json, record, ...lists]: unknown[] = answer;
  const texts = typeof json === "string" && typeof record === "string";
  return texts && (lists.length === 3 || lists.length === 4) && lists.every(Array.isArray);
}

/** The message without the id that lua/message.lua puts before it. */
const followUpIn = (text: string): string =>
  text.startsWith("{") ? text : text.slice(text.indexOf("\n") + 1);

export interface Result {
  readonly outcome: Outcome;
  /**
   * The record, if the command asked for it and it exists. If the taker took the ticket of this move, the record is as it
   * is after the lease.
   */
  readonly record: StoredDelegation | null;
  /** JSON texts of the follow-ups that the holder has not seen, oldest first; only with moves that extend its lease. */
  readonly unseen: readonly string[];
  /** The result of the taker's lease; absent if the command made no ticket that is ready. */
  readonly taken?: Result;
}

/** JSON members, without braces. */
function members(event: Command["event"]): string {
  let text = "";
  for (const name in event) {
    const json = event[name];
    if (json !== undefined) text += `${text === "" ? "" : ","}"${name}":${json}`;
  }
  return text;
}

/** The poll that takes a ticket, and the terms of its lease. */
export interface Taker {
  readonly agent: string;
  /** Identifies this lease if the answer is lost. */
  readonly nonce: string;
  readonly worker_id: string;
  /** Overrides the agent's setting. */
  readonly lease_ms?: number | undefined;
  readonly confirm_ms?: number | undefined;
}

type Asked = Omit<Command, "id">;
type Head = Record<string, unknown>;

const TAKE = { move: "lease", read: true } as const;

/** Moves that may end in a delay with jitter; a failure may become a retry. */
const JITTERED: ReadonlySet<string> = new Set([
  ...MOVE_NAMES.filter((name) => {
    const { delay }: Move = MOVES[name];
    return delay === "backoff" || delay === "release" || delay === "handoff";
  }),
  "fail",
  "due",
]);

const rowOf = ({ move }: Pick<Command, "move">): Partial<Move> =>
  move === "due" || move === "erase" ? {} : MOVES[move];
const memoryOf = (command: Pick<Command, "move">): Move["memory"] => rowOf(command).memory;

/**
 * True if the command is accepted even when memory is short: its bodies are small. (`delegate` checks new work before.)
 */
function isAllowedAtCeiling(command: Command): boolean {
  const memory = memoryOf(command);
  if (memory !== undefined) return memory === "new";
  const { event, fields, history, artifacts } = command;
  return JSON.stringify({ event, fields, history, artifacts }).length <= LIMITS.ceiling_bytes.value;
}

const takeHead = ({ base }: Pick<ShardKeys, "base">, { agent, ...params }: Taker): Head => ({
  ...params,
  move: "lease",
  take: true,
  target: agent,
  base,
});

/** `isReached` is true while memory is so short that no delegation may grow. */
export interface Ceiling {
  readonly isReached: () => boolean;
}
const NO_CEILING: Ceiling = { isReached: () => false };

export type Observe = (command: Asked, outcome: Outcome, record: StoredDelegation | null) => void;

export class Writer {
  readonly #redis: Redis;
  readonly #shards: Shards;
  readonly #clock: Clock;
  readonly #retention_ms: number;
  readonly #observe: Observe;
  readonly #ceiling: Ceiling;
  readonly #underWay = new Map<string, Promise<Result>>();

  /** `observe` gets every outcome, with the record if it was read. */
  constructor(
    redis: Redis,
    shards: Shards,
    clock: Clock,
    retentionMs: number,
    observe: Observe = () => {},
    ceiling: Ceiling = NO_CEILING,
  ) {
    this.#redis = redis;
    this.#shards = shards;
    this.#clock = clock;
    this.#retention_ms = retentionMs;
    this.#observe = observe;
    this.#ceiling = ceiling;
  }

  /**
   * With `taker`, the same step also takes the queue's first ticket for it: the move's own, or one that is before it.
   */
  async move(command: Command, taker?: Taker): Promise<Result> {
    if (this.#ceiling.isReached() && !isAllowedAtCeiling(command)) return this.#withoutGrowing(command);
    try {
      return await this.#move(command, taker);
    } catch (error) {
      // Redis has reached maxmemory.
      if (memoryOf(command) !== "grows" || !isOutOfMemory(error)) throw error;
      return await this.#withoutGrowing(command);
    }
  }

  /** Degrades or refuses a move when memory is short: a holder that reports progress still extends its lease. */
  async #withoutGrowing(command: Command): Promise<Result> {
    const { degrades_to, status: dropped } = rowOf(command);
    if (degrades_to === undefined || command.artifacts?.length) {
      return { outcome: { kind: "memory", now: 0 }, record: null, unseen: [] };
    }
    const kept = Object.entries(command.fields ?? {}).filter(([name]) => name !== dropped);
    const less = { ...command, move: degrades_to, event: {}, fields: Object.fromEntries(kept) };
    const result = await this.#move(less);
    const { outcome } = result;
    if (outcome.kind !== "ok") return result;
    const done: Moved = { ...outcome, progress_dropped: true };
    return { ...result, outcome: done };
  }

  async #move(command: Command, taker?: Taker): Promise<Result> {
    const shard = this.#shards.ofId(command.id);
    if (!shard) return { outcome: { kind: "missing", now: 0 }, record: null, unseen: [] };
    const keys = [shard.delegation(command.id)];
    const head = {
      ...command.params,
      move: command.move,
      id: command.id,
      base: shard.base,
      bytes: command.bytes,
    };
    const args = this.#args(command, head);
    if (taker) {
      keys.push(shard.agent(taker.agent));
      args.push(this.#head(TAKE, takeHead(shard, taker)));
    }
    const moving = this.#run(keys, args, command);
    this.#underWay.set(command.id, moving);
    try {
      return await moving;
    } finally {
      if (this.#underWay.get(command.id) === moving) this.#underWay.delete(command.id);
    }
  }

  /** Settles when every move that this process has in flight is answered and observed. */
  underWay(id: string): Promise<unknown> | undefined {
    return this.#underWay.get(id);
  }

  /**
   * Takes the first ticket of an agent's queue and leases its delegation, in one step. The outcome has the delegation's
   * id. It is `empty` if no ticket is ready; another refusal means that the ticket was stale (and is gone) or early.
   */
  async take(taker: Taker): Promise<Result> {
    const shard = this.#shards.ofAgent(taker.agent);
    return this.#run([shard.agent(taker.agent)], this.#args(TAKE, takeHead(shard, taker)), TAKE);
  }

  #args(command: Asked, head: Head): string[] {
    const { artifacts: chunks, history, shows } = command;
    if (chunks && chunks.length > 0) {
      head.chunks = chunks.map(({ artifact, append = false }) => ({ id: artifact.artifactId, append }));
      head.shows = shows;
    }
    const args = ["", members(command.event), history?.join(",") ?? ""];
    for (const name in command.fields) {
      const value = command.fields[name];
      if (value !== undefined) args.push(name, value);
    }
    head.fields = (args.length - 3) / 2;
    args[0] = this.#head(command, head);
    for (const { artifact } of chunks ?? []) args.push(JSON.stringify(artifact));
    return args;
  }

  #head({ move, read = false }: Asked, head: Head): string {
    head.clock = this.#clock.offset_ms;
    head.retention_ms = this.#retention_ms;
    if (JITTERED.has(move)) head.random = Math.random();
    head.read = read;
    head.fields ??= 0;
    // Replaces half characters, because the script's JSON decoder fails on them.
    return wellFormedJson(JSON.stringify(head));
  }

  async #run(
    keys: readonly string[],
    args: readonly string[],
    command: Asked & { readonly id?: string },
  ): Promise<Result> {
    const script = memoryOf(command) === undefined ? inFlightScript : growingScript;
    return this.#result(await script.run(this.#redis, keys, args), command);
  }

  #result(answer: unknown, command: Asked & { readonly id?: string }): Result {
    if (!isReply(answer)) throw new TypeError("the script answered with something unexpected");
    const [json, record, history, artifacts, unseen, taken] = answer;
    const outcome = outcomeSchema.parse(JSON.parse(json));
    const id = outcome.id ?? command.id;
    const stored =
      record.length > 0 && id !== undefined
        ? storedFromLines(id, record, { history, artifacts: toFields(artifacts) })
        : null;
    this.#observe(command, outcome, stored);
    if (!taken) return { outcome, record: stored, unseen: unseen.map(followUpIn) };
    const took = this.#result(taken, TAKE);
    const newer = took.record?.id === id ? took.record : null;
    return { outcome, record: stored ?? newer, unseen: unseen.map(followUpIn), taken: took };
  }
}
