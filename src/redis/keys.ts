/**
 * Every Redis key: its type, what it stores, and who writes it. Limit: keys below `q:` belong to BullMQ.
 *
 * All keys of a shard have the hash tag `{errand:<shard>}`, so a script never leaves its slot. An agent's name hashes
 * to its shard. A delegation is in its target's shard, and its id names the shard.
 */

import { createHash } from "node:crypto";

/** The keys outside the shards: tokens, sessions, gateways, the layout. They are in one slot. */
const COMMON = "{errand}";

/** The field of a shard's `seen` with the pauses of an agent's workers; no agent's name has a colon. */
export const pausedField = (agent: string): string => `${agent}:paused`;

export const keys = {
  /** HASH: the version of the layout, the number of shards, the id of the broker, and what is left of earlier numbers (redis/layout.ts). */
  layout: `${COMMON}:layout`,
  /** HASH agent → its shard; only of agents in another shard than their name leads to (backup/migration/grow.ts). */
  placed: `${COMMON}:placed`,
  /** HASH token id → JSON {hash, principal, created_at, expires_at}. */
  tokens: `${COMMON}:tokens`,
  /** STREAM: the audit log of the operator. */
  audit: `${COMMON}:audit`,
  /**
   * STREAM: the audit log of all others, and of decisions; separate, so that they cannot push out the operator's entries. Beside it
   * `:shares` and `:index`, which engine/upkeep/audit.lua describes.
   */
  auditOthers: `${COMMON}:audit:others`,
  /** ZSET agent → when the last agent with that name was deleted, ms; kept longer than that agent's delegations. */
  deleted: `${COMMON}:deleted`,
  /** ZSET token id → when it expires, ms; only of tokens that expire. */
  expiring: `${COMMON}:tokens:expiring`,
  /** HASH: figures of a subject in one bucket of time (engine/stats/layout.ts); expires. */
  stats: (subject: string, seconds: number, slot: number) => `${COMMON}:stats:${subject}:${seconds}:${slot}`,
  /** ZSET: the subjects that have figures → when they were last counted, ms. */
  statsSubjects: `${COMMON}:stats:subjects`,
  /** STRING: the gateway that samples the queues at present; expires. */
  statsSampler: `${COMMON}:stats:sampler`,
  /** ZSET gateway id → its last sign of life, ms; without a recent one, presence does not count the gateway. */
  gateways: `${COMMON}:gateways`,
  /** HASH agent → number of polls parked at that gateway; expires when the gateway is gone. */
  pollers: (gateway: string) => `${COMMON}:pollers:${gateway}`,
  /** STRING: the reservation of an idempotency key, named by a hash of principal and key; in a slot of its own. */
  idempotency: (hash: string) => `errand:idempotency:${hash}`,
  /** STRING: written to prove that this gateway can write; expires. */
  writable: (gateway: string) => `${COMMON}:writable:${gateway}`,
  /** The same for the masters of a Cluster, in any slot. */
  writableAt: (gateway: string, n: number) => `errand:writable:${gateway}:${n}`,
  /** STRING: JSON of a session (engine/access/sessions.ts); expires with it. */
  session: (id: string) => `${COMMON}:session:${id}`,
  /** ZSET session id → when it expires, ms; revoked and expired ones are removed later. */
  sessions: `${COMMON}:sessions`,
  /** The same for one principal; expires. */
  sessionsOf: (principal: string) => `${COMMON}:sessions:${principal}`,
  /** STRING: JSON of the token that the code with this hash signs in with; expires with the code. */
  sessionCode: (hash: string) => `${COMMON}:session-code:${hash}`,
  /** ZSET hash → when the code expires, ms; one for each principal, expires. */
  sessionCodesOf: (principal: string) => `${COMMON}:session-codes:${principal}`,
  /** STRING: written to wait until replicas have a revocation or the deletion of an agent (redis/replicas.ts); expires. */
  replicated: `${COMMON}:replicated`,
  /** STRING: replaced whenever a token or session is revoked (engine/access/revocations.ts, util/marked-cache.ts). */
  revokedMark: `${COMMON}:revoked:mark`,
  /** PUB/SUB: ids of tokens and sessions that were revoked. */
  revoked: `${COMMON}:revoked`,
  /**
   * All keys of files begin so; engine/files/lua/keys.lua has them. The content of files is not in Redis
   * (engine/files/store.ts).
   */
  files: `${COMMON}:files`,
  /** HASH: a schedule; engine/schedules/stored-schedule.ts has the fields. */
  schedule: (id: string) => `${COMMON}:schedule:${id}`,
  /** LIST: JSON of its runs, newest first; bounded. */
  scheduleRuns: (id: string) => `${COMMON}:schedule:${id}:runs`,
  /** ZSET schedule → when it was created, ms. */
  schedules: `${COMMON}:schedules`,
  /** The same for one principal. */
  schedulesOf: (principal: string) => `${COMMON}:schedules:of:${principal}`,
  /** ZSET schedule → when it needs something next, ms; only of active ones and of those with a tick in progress. */
  schedulesDue: `${COMMON}:schedules:due`,
  /** PUB/SUB: there are schedules; gateways that run none begin to. */
  schedulesMade: `${COMMON}:schedules:made`,
  /** Prefix of BullMQ's keys for the wakes of schedules. */
  scheduleQueuePrefix: `${COMMON}:q`,
  /** HASH: a subscription; engine/subscriptions/stored-subscription.ts has the fields. */
  subscription: (id: string) => `${COMMON}:subscription:${id}`,
  /** LIST: JSON of the notifications that wait for one of its channels, oldest first; bounded. */
  notices: (id: string, lane: string) => `${COMMON}:subscription:${id}:${lane}`,
  /** ZSET subscription → when it was created, ms. */
  subscriptions: `${COMMON}:subscriptions`,
  /** The same for one principal. */
  subscriptionsOf: (principal: string) => `${COMMON}:subscriptions:of:${principal}`,
  /** STRING: a number that grows with every change of a subscription. */
  subscriptionsVersion: `${COMMON}:subscriptions:version`,
  /** STRING: when a principal has all tests of subscriptions again, ms; expires then. */
  subscriptionTests: (principal: string) => `${COMMON}:subscriptions:tests:${principal}`,
  /** ZSET `<subscription> <lane>` → the number of its job; only lanes in which notifications wait. */
  subscriptionsBusy: `${COMMON}:subscriptions:busy`,
  /** HASH shard → the id of the last event for which all notifications are in their lanes. */
  noticed: `${COMMON}:subscriptions:noticed`,
  /** ZSET `<delegation> <question>` → when to tell that the question is about to expire, ms. */
  questionsExpiring: `${COMMON}:subscriptions:expiring`,
  /** STRING: the gateway that reads the events for subscriptions at present; expires. */
  notifier: `${COMMON}:subscriptions:notifier`,
  /** LIST: JSON of who was told of a question of the delegation and how, newest first; bounded, expires. */
  told: (delegation: string) => `${COMMON}:told:${delegation}`,
  /** STRING: JSON of what the link with this hash is for; expires with its question. */
  link: (hash: string) => `${COMMON}:link:${hash}`,
  /** LIST: the hashes of the links of a person, newest first; bounded, expires with the last of them. */
  linksOf: (person: string) => `${COMMON}:links:${person}`,
  /** The answer that is being given by the link. */
  linkPress: (hash: string) => `${COMMON}:link:${hash}:press`,
  /** STRING: the key from which the secrets of links are derived. */
  linkKey: `${COMMON}:link-key`,
  /** STRING: JSON of the keys with which the broker signs what it sends to the push services of browsers. */
  vapid: `${COMMON}:vapid`,
  /** PUB/SUB: subscriptions have changed; gateways that look after none begin to. */
  subscriptionsChanged: `${COMMON}:subscriptions:changed`,
  /** PUB/SUB: answers and cancellations of MCP clients for a call at another gateway (doors/mcp/session/sessions.ts). */
  mcpMessages: `${COMMON}:mcp`,
} as const;

/**
 * HASH: which restore or migration writes to this Redis, and until when (backup/transfer-lock.ts). It is no part of the
 * data, so it is neither copied nor deleted with it; but it is in the slot of the layout, for scripts that need both.
 */
export const transferKey = `${COMMON}transfer`;

/**
 * Whether the key is one of those below; other programs may use the same database. A backup copies these keys, and a
 * restore deletes them.
 */
export const isOwnKey = (key: string): boolean =>
  /^(?:\{errand(?::[0-9a-z]+)?\}:|errand:(?:idempotency|writable):)/.test(key);

/** Whether the key is the row of a file (engine/files/lua/keys.lua). */
export const isFileKey = (key: string): boolean => key.startsWith(`${keys.files}:file:`);

/** Whether the key is the record of a delegation. */
export const isRecordKey = (key: string): boolean => /^\{errand:[0-9a-z]+\}:d:[^:]+$/.test(key);

/**
 * The list of a context's delegations. An id that is long, or has characters with a meaning in keys and patterns, is
 * replaced by its hash, as in lifecycle/lua/index.lua.
 */
export const contextIndex = (id: string): string =>
  `context:${/^[A-Za-z0-9._:-]{1,128}$/.test(id) ? id : `#${createHash("sha1").update(id).digest("hex")}`}`;

export interface ShardKeys {
  /** The hash tag; the script derives the keys below from it. */
  readonly base: string;
  /**
   * HASH: the record, written only by the script (lifecycle/lua). Without the field `packed` it is a mark, which expires: no
   * record with this id may be created (engine/delegations/idempotency.ts).
   */
  readonly delegation: (id: string) => string;
  /** LIST: JSON messages, oldest first; an element may hold several, comma separated. */
  readonly history: (id: string) => string;
  /** HASH: artifacts in chunks; lifecycle/lua/lazy/artifacts.lua has the layout. */
  readonly artifacts: (id: string) => string;
  /** LIST: follow-ups that the holder has not seen, oldest first: the id as JSON, a line break, the message as JSON. */
  readonly unseen: (id: string) => string;
  /** HASH request_id → JSON answer, while only some requests of a question are answered; deleted with the question. */
  readonly answerParts: (id: string, interrupt: string) => string;
  /**
   * HASH: answers to `auth` questions, only for the holder of the lease; fields `answers:<question>`,
   * `hash:<question>`.
   */
  readonly secrets: (id: string) => string;
  /** SET: ids of its children, including those about to be created; a cascade removes the ones that it canceled. */
  readonly children: (id: string) => string;
  /** HASH: the children that it waits for, each with its state when it ended, or nothing. */
  readonly awaits: (id: string) => string;
  /**
   * HASH: what each agent of the shard, and what each delegator in this shard, has used in a day (2026-11-28) or a month
   * (2026-11), UTC; see lazy/usage.lua.
   */
  readonly spentIn: (period: string) => string;
  /** HASH: its children, each with what its tree had used when it was counted last; only under a budget. */
  readonly spent: (id: string) => string;
  /**
   * HASH push config id → JSON with its secrets; added by the script, deleted by
   * engine/outbound/push-notifications/delivery-state.ts.
   */
  readonly pushes: (id: string) => string;
  /** HASH: the delivery state of each push config; engine/outbound/push-notifications/delivery-state.ts has the fields. */
  readonly pushed: (id: string) => string;
  /** LIST: events that could not be written to their streams yet, oldest first; almost always absent. */
  readonly unpublished: (id: string) => string;
  /** STRING: this child must not be created, because its parent was canceled; expires. */
  readonly tombstone: (id: string) => string;
  /** LIST: ids and texts of the delegation's events in turn, oldest first. Kept as long as the record. */
  readonly delegationEvents: (id: string) => string;
  /** STREAM: the newest events of the shard; the live feed of the gateways. */
  readonly events: string;
  /**
   * HASH: two fields for each stream of `events` and `feed`, written by the script. `<stream>` counts the events that
   * were erased from it. `<stream>:whole` has the oldest entry at the last erasure, and how many events had been trimmed
   * by then (events/missed.lua).
   */
  readonly erased: string;
  /**
   * STREAM: the events of one principal, trimmed by age. An entry has the id of the event and, as `r`, its delegation and
   * number.
   */
  readonly feed: (principal: string) => string;
  /**
   * ZSET delegation id → created at, ms: `all`, `target:…`, `delegator:…`, `context:…`, `parent:…`.
   *
   * The same of settled questions, which were answered or expired: `<delegation id> <number> <number>` → when it was
   * settled, ms: `answers:all`, `answers:target:…`, `answers:delegator:…`. The numbers are those of the event that settled
   * it and of its own event, 0 if that is not known.
   */
  readonly list: (index: string) => string;
  /** HASH principal → about how many bytes its delegations keep; written by the script. */
  readonly kept: string;
  /** ZSET delegation id → when the sweep looks at it next, ms; includes finished ones until they are deleted. */
  readonly due: string;
  /** STRING: when a gateway last gave a sign of life in this shard, ms by Redis' clock; written by the sweep. */
  readonly alive: string;
  /** LIST: the newest intervals without a sign of life, oldest first: `<from> <to>`, ms; written by the sweep. */
  readonly outages: string;
  /**
   * ZSET delegation id → when it entered the state (submitted: when its ticket is ready), ms; one for each agent and
   * state.
   */
  readonly live: (
    agent: string,
    state: "submitted" | "working" | "interrupted" | "awaiting_children",
  ) => string;
  /** HASH: an agent's document and the numbers that the script needs. */
  readonly agent: (name: string) => string;
  /** STRING: replaced whenever an agent of this shard changes (util/marked-cache.ts). */
  readonly agentsMark: string;
  /** SET: the names of this shard's agents. */
  readonly agents: string;
  /** ZSET: the same names in alphabetical order; all scores are 0. */
  readonly agentNames: string;
  /** ZSET worker id → when it was last seen, ms; one for each agent, bounded, expires. */
  readonly workers: (agent: string) => string;
  /** HASH worker id → the tickets that are kept for it, `<delegation> <number>` lines; one for each agent, expires. */
  readonly sticky: (agent: string) => string;
  /**
   * ZSET: the next turns of the delegators in an agent's queue; one for each agent, bounded, deleted with the last ticket
   * (queue/tickets.lua).
   */
  readonly turns: (agent: string) => string;
  /** ZSET delegation id → its number: the unfinished delegations of one conversation (lifecycle/lua/lazy/line.lua). */
  readonly line: (agent: string, conversation: string) => string;
  /**
   * HASH conversation → until when its last worker is preferred, ms, and that worker; expires. Beside it `:older`
   * (lifecycle/lua/lazy/sticky.lua).
   */
  readonly last: (agent: string) => string;
  /** SET: the names of this shard's push agents. */
  readonly pushAgents: string;
  /** HASH push agent → the time, ms, since which its server cannot be reached. */
  readonly unreached: string;
  /**
   * HASH: the rules for an agent by one delegator or, for `all`, by those who may answer all of its questions. Its field
   * `version` grows with each change (engine/rules/rules.lua).
   */
  readonly rules: (agent: string, scope: string) => string;
  /** HASH rule id → its agent and scope, `<agent> <scope>`. */
  readonly rulePlaces: string;
  /** ZSET rule id → when it was created, ms: `all`, `by:<principal>`, `token:<id>`, `for:<agent>`. */
  readonly ruleList: (index: string) => string;
  /** HASH agent → when it was last seen, ms; `<agent>:paused` → JSON of its workers' pauses (engine/agents/paused-workers.ts). */
  readonly seen: string;
  /** PUB/SUB: wakes of polls; engine/leases/wake-message.ts has the format. */
  readonly wake: string;
  /** STRING: written to wait until replicas have what was written before (redis/replicas.ts); expires. */
  readonly replicated: string;
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
    awaits: (id) => `${base}:d:${id}:awaits`,
    spentIn: (period) => `${base}:spent:${period}`,
    spent: (id) => `${base}:d:${id}:spent`,
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
    alive: `${base}:alive`,
    outages: `${base}:outages`,
    live: (agent, state) => `${base}:live:${agent}:${state}`,
    agent: (name) => `${base}:agent:${name}`,
    agentsMark: `${base}:agents:mark`,
    agents: `${base}:agents`,
    agentNames: `${base}:agents:names`,
    workers: (agent) => `${base}:workers:${agent}`,
    sticky: (agent) => `${base}:sticky:${agent}`,
    turns: (agent) => `${base}:turns:${agent}`,
    line: (agent, conversation) => `${base}:line:${agent}:${conversation}`,
    last: (agent) => `${base}:last:${agent}`,
    pushAgents: `${base}:push_agents`,
    unreached: `${base}:unreached`,
    rules: (agent, scope) => `${base}:rules:${agent}:${scope}`,
    rulePlaces: `${base}:rules`,
    ruleList: (index) => `${base}:list:rules:${index}`,
    seen: `${base}:seen`,
    wake: `${base}:wake`,
    replicated: `${base}:replicated`,
    queuePrefix: `${base}:q`,
  };
}
