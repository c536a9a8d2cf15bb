/**
 * Maps agents, delegations and leases to shards, and creates ids, which contain the shard.
 * Limit: the number of shards only grows, while no gateway runs (backup/migration/grow.ts).
 */
import { createHash, randomFillSync } from "node:crypto";
import { type ShardKeys, shardKeys } from "./keys.ts";

/** Crockford's alphabet, without i, l, o and u; safe in URLs and in BullMQ's ids. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";

/**
 * Random characters, drawn in bulk, because one system call for each id would cost more than everything else. Each is
 * used once.
 */
const pool = Buffer.alloc(8_192);
let used = pool.length;

function refill(): void {
  randomFillSync(pool);
  for (let at = 0; at < pool.length; at += 1) pool[at] = ALPHABET.charCodeAt((pool[at] ?? 0) & 31);
  used = 0;
}

/** `length` random characters, five bits each. Cut from the pool: V8 would keep a concatenated string in pieces. */
export function randomId(length: number): string {
  if (used + length > pool.length) refill();
  used += length;
  return pool.toString("latin1", used - length, used);
}

/** What remains from the time when there were fewer shards. */
export interface ShardHistory {
  /** Agents that stayed in their old shard because they had unfinished work when the number grew, and that shard. */
  readonly placed: ReadonlyMap<string, number>;
  /** The earlier numbers of shards, ascending. `until`: when the number grew, ms. */
  readonly earlier: readonly { readonly count: number; readonly until: number }[];
}

export const NO_HISTORY: ShardHistory = { placed: new Map(), earlier: [] };

/** The shard that an agent's name hashes to. */
export const shardOfName = (agent: string, count: number): number =>
  count === 1 ? 0 : createHash("sha1").update(agent).digest().readUInt32BE(0) % count;

export class Shards {
  readonly count: number;
  readonly all: readonly ShardKeys[];
  readonly #history: ShardHistory;

  constructor(count: number, history = NO_HISTORY) {
    this.count = count;
    this.all = Array.from({ length: count }, (_, shard) => shardKeys(shard));
    this.#history = history;
  }

  get earlier(): ShardHistory["earlier"] {
    return this.#history.earlier;
  }

  at(shard: number): ShardKeys {
    const found = this.all[shard];
    if (!found) throw new RangeError(`no shard ${shard}`);
    return found;
  }

  indexOfAgent(agent: string): number {
    return this.#history.placed.get(agent) ?? shardOfName(agent, this.count);
  }

  ofAgent(agent: string): ShardKeys {
    return this.at(this.indexOfAgent(agent));
  }

  /** Groups what belongs to agents by their shard, because one command may name only keys of one shard. */
  groupByShard<T>(items: Iterable<T>, agentOf: (item: T) => string): Map<ShardKeys, T[]> {
    const groups = new Map<ShardKeys, T[]>();
    for (const item of items) {
      const keys = this.ofAgent(agentOf(item));
      const group = groups.get(keys);
      if (group) group.push(item);
      else groups.set(keys, [item]);
    }
    return groups;
  }

  /** The shards that may have delegations of this agent: its own, and those that it was in before. */
  withDelegationsOf(agent: string): readonly ShardKeys[] {
    const earlier = this.earlier.map(({ count }) => shardOfName(agent, count));
    return [...new Set([this.indexOfAgent(agent), ...earlier])].map((shard) => this.at(shard));
  }

  newDelegationId(target: string): string {
    return `dlg_${this.indexOfAgent(target).toString(36)}_${randomId(26)}`;
  }

  /** The shard in a delegation or lease id; undefined if there is no such shard, so that the id cannot exist. */
  indexOfId(id: string): number | undefined {
    // parseInt stops at the next underscore.
    const shard = Number.parseInt(id.slice(id.indexOf("_") + 1), 36);
    return shard >= 0 && shard < this.count ? shard : undefined;
  }

  ofId(id: string): ShardKeys | undefined {
    const shard = this.indexOfId(id);
    return shard === undefined ? undefined : this.at(shard);
  }
}

/** A lease id is its delegation's id followed by the fence. */
export const leaseIdOf = (delegationId: string, fence: number): string =>
  `lse_${delegationId.slice("dlg_".length)}_${fence}`;

export function parseLeaseId(leaseId: string): { delegationId: string; fence: number } {
  const cut = leaseId.lastIndexOf("_");
  return { delegationId: `dlg_${leaseId.slice("lse_".length, cut)}`, fence: Number(leaseId.slice(cut + 1)) };
}
