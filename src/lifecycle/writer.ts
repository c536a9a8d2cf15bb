/**
 * The only way to move a delegation: it sends a typed command to the script and returns one of a closed set of
 * outcomes. Limit: a refusal is an outcome, never an exception; engine/errors.ts turns it into the caller's error.
 */
import type { Redis } from "../redis/connect.ts";
import { isOutOfMemory } from "../redis/errors.ts";
import type { ShardKeys } from "../redis/keys.ts";
import { NO_REPLICAS, type Replicas } from "../redis/replicas.ts";
import type { Shards } from "../redis/shards.ts";
import { LIMITS } from "../schema/limits.ts";
import { Batches } from "./batch.ts";
import {
  type Clock,
  type Command,
  type CommonParams,
  encode,
  encodeTake,
  TAKE,
  type Taker,
} from "./command.ts";
import { withGiven } from "./fields.ts";
import { isReply, type Moved, type Outcome, outcomeSchema, type Result } from "./outcome.ts";
import { growingScript, inFlightScript } from "./script.ts";
import { MOVES, type Move } from "./states.ts";
import { type StoredDelegation, storedFrom, toFields } from "./stored-delegation.ts";

/** The message of a stored follow-up. Its id comes before it; see lua/lazy/message.lua. */
const followUpIn = (text: string): string => text.slice(text.indexOf("\n") + 1);

const rowOf = ({ move }: Pick<Command, "move">): Partial<Move> =>
  move === "due" || move === "erase" ? {} : MOVES[move];
const memoryOf = (command: Pick<Command, "move">): Move["memory"] => rowOf(command).memory;

/**
 * Whether the command is accepted when memory is short: new work, which `delegate` has checked, and a small command
 * whose move has no `memory` in states.ts.
 */
function isAllowedAtCeiling(command: Command): boolean {
  const memory = memoryOf(command);
  if (memory !== undefined) return memory === "new";
  const { event, fields, history, artifacts } = command;
  return JSON.stringify({ event, fields, history, artifacts }).length <= LIMITS.ceiling_bytes.value;
}

const scriptOf = (command: Pick<Command, "move">) =>
  memoryOf(command) === undefined ? inFlightScript : growingScript;

/** What the command adds to the bodies of a delegation, at most. Limit: without its artifacts. */
const bytesOf = ({ bytes = 0, history = [] }: Command): number =>
  bytes + Buffer.byteLength(history.join(","));

/** Moves that a caller relies on after a fail-over. The others are repeated, or expire. */
const REPLICATED: ReadonlySet<string> = new Set<Command["move"]>([
  ...(["submit", "answer", "message", "cancel", "redrive"] as const),
  ...(["complete", "fail", "reject", "retry"] as const),
]);
/** The move is made, now or by an earlier request. */
const IS_MADE: ReadonlySet<Outcome["kind"]> = new Set(["ok", "exists", "duplicate", "answered", "redriven"]);

const MISSING: Result = { outcome: { kind: "missing", now: 0 }, record: null, unseen: [] };

/** A take learns its delegation's id from the outcome. */
type CommandOrTake = Omit<Command, "id"> & { readonly id?: string };

/** `isReached` is true while memory is so short that no delegation may grow. */
export interface Ceiling {
  readonly isReached: () => boolean;
}
const NO_CEILING: Ceiling = { isReached: () => false };

export type Observe = (command: CommandOrTake, outcome: Outcome, record: StoredDelegation | null) => void;

export interface WriterOptions {
  readonly redis: Redis;
  readonly shards: Shards;
  readonly clock: Clock;
  /** How long a finished delegation is kept. */
  readonly retentionMs: number;
  /** Gets every outcome, with the record if it was read. */
  readonly observe?: Observe;
  /** Default: memory is never short. */
  readonly ceiling?: Ceiling;
  /** Default: no replica must have a move before it is acknowledged. */
  readonly replicas?: Replicas;
}

export class Writer {
  readonly #batches: Batches;
  readonly #shards: Shards;
  readonly #common: CommonParams;
  readonly #observe: Observe;
  readonly #ceiling: Ceiling;
  readonly #replicas: Replicas;
  #onMoved: (record: StoredDelegation) => void = () => {};
  readonly #underWay = new Map<string, Promise<unknown>>();

  constructor(options: WriterOptions) {
    this.#batches = new Batches(options.redis);
    this.#shards = options.shards;
    this.#common = { clock: options.clock, retention_ms: options.retentionMs };
    this.#observe = options.observe ?? (() => {});
    this.#ceiling = options.ceiling ?? NO_CEILING;
    this.#replicas = options.replicas ?? NO_REPLICAS;
  }

  /** `listener` gets each record that a move returned, before the move's caller does. */
  onMoved(listener: (record: StoredDelegation) => void): void {
    this.#onMoved = listener;
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

  /**
   * Makes two moves of one delegation in one step, the second only if the first succeeds; `second` is null if it was not
   * made. Refuses the first if both together are too large. Returns null, and makes neither, if memory is short.
   */
  async moveBoth(first: Command, second: Command): Promise<{ first: Result; second: Result | null } | null> {
    if (this.#ceiling.isReached()) return null;
    const shard = this.#shards.ofId(first.id);
    if (!shard) return { first: MISSING, second: null };
    const bounded = { ...first, params: { ...first.params, next_bytes: bytesOf(second) } };
    const [args, secondArgs] = [bounded, second].map((command) => encode(command, shard, this.#common));
    const running = this.#batches.run(
      scriptOf(first),
      shard.base,
      [shard.delegation(first.id)],
      args ?? [],
      secondArgs,
    );
    const answers = await this.#tracked(first.id, running).catch((error: unknown) => {
      if (isOutOfMemory(error)) return null;
      throw error;
    });
    if (answers === null) return null;
    if (!isReply(answers.second)) return { first: this.#result(answers.first, first), second: null };
    const confirmed = this.#confirmMade(shard.replicated, second, answers.second);
    if (confirmed) await confirmed;
    // The record between the two moves is not reported.
    const made = this.#result(answers.first, first, false);
    const next = this.#result(answers.second, second);
    return { first: made, second: next.outcome.kind === "ok" ? next : null };
  }

  async #move(command: Command, taker?: Taker): Promise<Result> {
    const shard = this.#shards.ofId(command.id);
    if (!shard) return MISSING;
    const keys: [string, ...string[]] = [shard.delegation(command.id)];
    const args = encode(command, shard, this.#common);
    if (taker) {
      keys.push(shard.agent(taker.agent));
      args.push(encodeTake(taker, shard, this.#common));
    }
    return this.#tracked(command.id, this.#run(shard, keys, args, command));
  }

  async #tracked<T>(id: string, moving: Promise<T>): Promise<T> {
    this.#underWay.set(id, moving);
    try {
      return await moving;
    } finally {
      if (this.#underWay.get(id) === moving) this.#underWay.delete(id);
    }
  }

  /** Settles when the delegation's move that this process has in flight is answered; undefined if there is none. */
  underWay(id: string): Promise<unknown> | undefined {
    return this.#underWay.get(id);
  }

  /**
   * Takes the first ticket of an agent's queue and leases its delegation, in one step. The outcome has the delegation's
   * id. It is `empty` if no ticket is ready; another refusal means that the ticket was stale (and is gone) or early.
   */
  async take(taker: Taker): Promise<Result> {
    const shard = this.#shards.ofAgent(taker.agent);
    const args = [encodeTake(taker, shard, this.#common), "", ""];
    return this.#run(shard, [shard.agent(taker.agent)], args, TAKE);
  }

  /** Resolves when the delegation, as it is now, is at the replicas that ERRAND_REDIS_WAIT_REPLICAS requires. */
  async confirm(id: string): Promise<void> {
    const shard = this.#shards.ofId(id);
    if (shard) await this.#replicas.confirm(shard.replicated);
  }

  async #run(
    { base, replicated }: Pick<ShardKeys, "base" | "replicated">,
    keys: readonly [string, ...string[]],
    args: readonly string[],
    command: CommandOrTake,
  ): Promise<Result> {
    const { first } = await this.#batches.run(scriptOf(command), base, keys, args);
    const confirmed = this.#confirmMade(replicated, command, first);
    if (confirmed) await confirmed;
    return this.#result(first, command);
  }

  /** Waits for the required replicas, before anyone learns of the move; undefined if there is nothing to wait for. */
  #confirmMade(replicated: string, { move }: CommandOrTake, reply: unknown): Promise<void> | undefined {
    if (!this.#replicas.isRequired || !REPLICATED.has(move) || !isReply(reply)) return undefined;
    const { kind } = outcomeSchema.parse(JSON.parse(reply[0]));
    return IS_MADE.has(kind) ? this.#replicas.confirm(replicated) : undefined;
  }

  /** `given`: the own fields that the call stored, which the record of the answer only marks. */
  #result(
    answer: unknown,
    command: CommandOrTake,
    isReported = true,
    given: NonNullable<Command["fields"]> = command.fields ?? {},
  ): Result {
    if (!isReply(answer)) throw new TypeError("the script's answer to a command has an unknown form");
    const [json, record, [history = [], artifacts = [], unseen = []], taken] = answer;
    const outcome = outcomeSchema.parse(JSON.parse(json));
    const id = outcome.id ?? command.id;
    const stored =
      record !== "" && id !== undefined
        ? storedFrom(id, withGiven(record.split("\n"), given), { history, artifacts: toFields(artifacts) })
        : null;
    this.#observe(command, outcome, isReported ? stored : null);
    if (isReported && stored && outcome.kind === "ok") this.#onMoved(stored);
    if (!taken) return { outcome, record: stored, unseen: unseen.map(followUpIn) };
    const took = this.#result(taken, TAKE, true, given);
    const newer = took.record?.id === id ? took.record : null;
    return { outcome, record: stored ?? newer, unseen: unseen.map(followUpIn), taken: took };
  }
}
