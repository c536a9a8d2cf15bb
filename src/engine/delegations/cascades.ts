/**
 * Cancels the children of a delegation that did not complete, in the background. Limit: a few cascades run at once, a few children at a
 * time; the sweep continues the rest.
 */
import { Script } from "../../redis/script.ts";
import { afterMove, type Moves } from "../after-move.ts";
import type { BulkReads, Cascade, CascadeService, Records } from "../broker.ts";
import { refusal } from "../errors.ts";
import { cancelMove } from "./cancel.ts";

const CASCADES_AT_ONCE = 4;
const CHILDREN_AT_ONCE = 16;
/** The most cascades that run or wait at this gateway; the sweep runs the rest. */
const MAX_CASCADES = 1_000;
/** A cascade that ran for this long extends its claim, well before the sweep would take it over. */
const EXTEND_AFTER_MS = 1_500;
/** Longer than any submit takes. */
const TOMBSTONE_MS = 3_600_000;

/**
 * KEYS: the record, its tombstone · ARGV: ttl in ms · Returns 1 when the record exists; otherwise 0, and then it can no
 * longer be created.
 */
const tombstoneScript = new Script(`#!lua flags=allow-oom
if redis.call('EXISTS', KEYS[1]) == 1 then return 1 end
redis.call('SET', KEYS[2], 1, 'PX', ARGV[1])
return 0`);

/** KEYS: a parent's children · ARGV: the canceled ones. A script, so that it also runs when memory is full. */
const doneScript = new Script(`#!lua flags=allow-oom
return redis.call('SREM', KEYS[1], unpack(ARGV))`);

interface Task {
  readonly by: string;
  all: boolean;
  claim: number;
  /** By `performance.now()`. */
  claimedAt: number;
  done: Promise<void>;
}

type CascadeNeeds = Moves & Records & BulkReads;

export class Cascades implements CascadeService {
  readonly #broker: () => CascadeNeeds;
  readonly #tasks = new Map<string, Task>();
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  #stopped = false;

  constructor(broker: () => CascadeNeeds) {
    this.#broker = broker;
  }

  /** Resolves when all descendants are canceled or left to the sweep. Joins a cascade that already runs here. */
  run(id: string, { by, claim, all }: Cascade): Promise<void> {
    const claimedAt = performance.now();
    const known = this.#tasks.get(id);
    if (known) {
      Object.assign(known, { claim, claimedAt, all: known.all || all });
      return known.done;
    }
    if (this.#stopped || this.#tasks.size >= MAX_CASCADES) return Promise.resolve();
    const task: Task = { by, all, claim, claimedAt, done: Promise.resolve() };
    this.#tasks.set(id, task);
    task.done = this.#run(id, task).finally(() => this.#tasks.delete(id));
    return task.done;
  }

  /** Finishes the children in progress; the sweep of another gateway continues with the rest. */
  stop(): void {
    this.#stopped = true;
  }

  async #run(id: string, task: Task): Promise<void> {
    const descendants: Promise<void>[] = [];
    if (this.#running >= CASCADES_AT_ONCE) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running += 1;
    try {
      await this.#cancelChildren(id, task, descendants);
    } finally {
      const next = this.#waiting.shift();
      // The next cascade takes over the slot.
      if (next) next();
      else this.#running -= 1;
    }
    await Promise.all(descendants);
  }

  async #cancelChildren(id: string, task: Task, descendants: Promise<void>[]): Promise<void> {
    const broker = this.#broker();
    const key = broker.shards.ofId(id)?.children(id) ?? "";
    for (;;) {
      if (this.#stopped || !(await this.#isOurs(id, task))) return;
      // A canceled delegation gets no new children, so the set only shrinks, and another gateway can continue.
      const children = await broker.bulk.srandmember(key, CHILDREN_AT_ONCE);
      if (children.length === 0) break;
      await Promise.all(children.map((child) => this.#cancelChild(id, task, child, descendants)));
      await doneScript.run(broker.redis, [key], children);
    }
    await broker.writer.move({ move: "follow_up", id, params: { cascaded: true } });
  }

  /** Extends the claim in time; false when another gateway took over, or the cascade is done. */
  async #isOurs(id: string, task: Task): Promise<boolean> {
    if (performance.now() - task.claimedAt < EXTEND_AFTER_MS) return true;
    const { outcome } = await this.#broker().writer.move({
      move: "follow_up",
      id,
      params: { claim: task.claim },
    });
    if (outcome.kind !== "ok" || outcome.claimed_until === undefined) return false;
    task.claim = outcome.claimed_until;
    task.claimedAt = performance.now();
    return true;
  }

  async #cancelChild(
    parent: string,
    { by, all }: Task,
    child: string,
    descendants: Promise<void>[],
  ): Promise<void> {
    const broker = this.#broker();
    const keys = broker.shards.ofId(child);
    if (!keys) return;
    const exists = await tombstoneScript.run(
      broker.redis,
      [keys.delegation(child), keys.tombstone(child)],
      [TOMBSTONE_MS],
    );
    if (exists !== 1) return;
    const options = {
      reason: `its parent ${parent} was canceled`,
      cascade: all ? ("all" as const) : undefined,
    };
    const { outcome } = await cancelMove(broker, by, child, options, false);
    if (outcome.kind === "state" || outcome.kind === "missing") return;
    if (outcome.kind !== "ok") throw refusal(outcome, child);
    const { cascade, cascade_all, claimed_until } = outcome;
    // Not awaited here: it waits for a slot of its own, and this cascade still occupies one.
    if (cascade !== undefined)
      descendants.push(broker.deliverPending(child, { cascade, cascade_all, claimed_until }));
    await afterMove(broker, child, { ...outcome, cascade: undefined });
  }
}
