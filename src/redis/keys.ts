/**
 * Every Redis key, its type and who writes it. Limit: keys below `q:` belong to BullMQ.
 *
 * Everything of one shard carries the hash tag `{errand:<shard>}`, so a script never leaves its slot. An
 * agent hashes to a shard; a delegation lives in its target's shard and its id says which.
 */

/** What the gateways share beside the shards: tokens, gateways, the layout. */
const COMMON = "{errand}";

export const keys = {
  /** HASH: for how many shards the data is laid out; written once. */
  layout: `${COMMON}:layout`,
  /** HASH token id → JSON {hash, principal, created_at, expires_at}. */
  tokens: `${COMMON}:tokens`,
  /** STREAM: the audit log of the operator. */
  audit: `${COMMON}:audit`,
  /** STREAM: the audit log of all others; separate, so that they cannot push out the operator's entries. */
  auditOthers: `${COMMON}:audit:others`,
  /** ZSET agent → when the last agent of that name was deleted, ms; as long as something of its time is kept. */
  deleted: `${COMMON}:deleted`,
  /** ZSET token id → when it expires, ms; of those that do. */
  expiring: `${COMMON}:tokens:expiring`,
  /** ZSET gateway id → last beat, ms; a gateway that stopped beating leaves the presence counts. */
  gateways: `${COMMON}:gateways`,
  /** HASH agent → parked polls at that gateway; expires with it. */
  pollers: (gateway: string) => `${COMMON}:pollers:${gateway}`,
  /** STRING: what an Idempotency-Key stands for, by a hash of principal and key; in a slot of its own. */
  idempotency: (hash: string) => `errand:idempotency:${hash}`,
  /** STRING: proof that this gateway may write; expires. */
  writable: (gateway: string) => `${COMMON}:writable:${gateway}`,
  /** PUB/SUB: token ids that were revoked. */
  revoked: `${COMMON}:revoked`,
} as const;

export interface ShardKeys {
  /** The hash tag; the script derives the keys below from it. */
  readonly base: string;
  /**
   * HASH: the record, written by the script (lifecycle/lua) alone. Without a state it is a mark that no record of this id may be
   * created (engine/delegations/idempotency.ts); the mark expires.
   */
  readonly delegation: (id: string) => string;
  /** LIST: JSON messages, oldest first; an element may hold several, comma separated. */
  readonly history: (id: string) => string;
  /** HASH: artifacts in chunks; lifecycle/lua/artifacts.lua has the layout. */
  readonly artifacts: (id: string) => string;
  /** LIST: follow-ups that its holder has not seen, oldest first: the id as JSON, a line break, the message as JSON. */
  readonly unseen: (id: string) => string;
  /** HASH request_id → JSON answer, of a question that is answered in part; deleted with the question. */
  readonly answerParts: (id: string, interrupt: string) => string;
  /** HASH: answers to `auth` questions, only for the holder of the lease; fields `answers:<question>`, `hash:<question>`. */
  readonly secrets: (id: string) => string;
  /** SET: ids of the delegations made, or about to be made, under it; a cascade takes out what it has canceled. */
  readonly children: (id: string) => string;
  /** HASH push config id → JSON, with its secrets; written by the script, entries taken out by engine/outbound/push-notifications/progress.ts. */
  readonly pushes: (id: string) => string;
  /** HASH: how far each of them is told; by `at:`, `job:`, `since:` and `part:` and its id. See engine/outbound/push-notifications/progress.ts. */
  readonly pushed: (id: string) => string;
  /** LIST: events that could not be written to their streams yet, oldest first; almost always absent. */
  readonly unpublished: (id: string) => string;
  /** STRING: this child shall not come to be, its parent was canceled; expires. */
  readonly tombstone: (id: string) => string;
  /** STREAM: the delegation's events, kept as long as the record. */
  readonly delegationEvents: (id: string) => string;
  /** STREAM: every event of the shard, short; the live feed of the gateways. */
  readonly events: string;
  /**
   * HASH stream → how many events were erased from it, for `events` and `feed`; stream with `:whole` → the id from which
   * on it has no hole, and how many were trimmed by then. Written by the script.
   */
  readonly erased: string;
  /** STREAM: the events of one principal, trimmed by age. */
  readonly feed: (principal: string) => string;
  /** ZSET delegation id → created at, ms: `all`, `target:…`, `delegator:…`, `context:…`, `parent:…`. */
  readonly list: (index: string) => string;
  /** HASH principal → bytes (about) that the delegations that it made keep; written by the script. */
  readonly kept: string;
  /** ZSET delegation id → when the sweep looks next, ms; a finished one until it is forgotten. */
  readonly due: string;
  /** ZSET delegation id → since when (submitted: ready when), ms; by agent and state. */
  readonly live: (agent: string, state: "submitted" | "working" | "interrupted") => string;
  /** HASH: an agent's document and the numbers that the script needs. */
  readonly agent: (name: string) => string;
  /** SET: the names of this shard's agents. */
  readonly agents: string;
  /** ZSET: the same names, all with score 0, in their order. */
  readonly agentNames: string;
  /** ZSET worker id → when it was last seen, ms; of an agent, bounded, expires. */
  readonly workers: (agent: string) => string;
  /** SET: those of them whose work the broker hands to a server. */
  readonly pushAgents: string;
  /** HASH agent → since when its server cannot be reached, ms; of push agents. */
  readonly unreached: string;
  /** HASH agent → when it was last heard of, ms. */
  readonly seen: string;
  /** PUB/SUB: agent names whose queue has something new. */
  readonly wake: string;
  /** Prefix of BullMQ's keys: `<prefix>:<agent>:…`. */
  readonly queuePrefix: string;
}

export function shardKeys(shard: number): ShardKeys {
  const base = `{errand:${shard.toString(36)}}`;
  return {
    base,
    delegation: (id) => `${base}:d:${id}`,
    history: (id) => `${base}:d:${id}:history`,
    artifacts: (id) => `${base}:d:${id}:artifacts`,
    unseen: (id) => `${base}:d:${id}:unseen`,
    answerParts: (id, interrupt) => `${base}:d:${id}:answers:${interrupt}`,
    secrets: (id) => `${base}:d:${id}:secrets`,
    children: (id) => `${base}:d:${id}:children`,
    pushes: (id) => `${base}:d:${id}:pushes`,
    pushed: (id) => `${base}:d:${id}:pushed`,
    unpublished: (id) => `${base}:d:${id}:unpublished`,
    tombstone: (id) => `${base}:tombstone:${id}`,
    list: (index) => `${base}:list:${index}`,
    delegationEvents: (id) => `${base}:d:${id}:events`,
    events: `${base}:events`,
    erased: `${base}:erased`,
    feed: (principal) => `${base}:feed:${principal}`,
    kept: `${base}:kept`,
    due: `${base}:due`,
    live: (agent, state) => `${base}:live:${agent}:${state}`,
    agent: (name) => `${base}:agent:${name}`,
    agents: `${base}:agents`,
    agentNames: `${base}:agents:names`,
    workers: (agent) => `${base}:workers:${agent}`,
    pushAgents: `${base}:push_agents`,
    unreached: `${base}:unreached`,
    seen: `${base}:seen`,
    wake: `${base}:wake`,
    queuePrefix: `${base}:q`,
  };
}
