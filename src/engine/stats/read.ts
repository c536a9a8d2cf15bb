/** Reads the figures of a period: one script, for a fixed number of small hashes. */
import { keys } from "../../redis/keys.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { Durations, Stats, StatsBucket, StatsFilter, StatsPeriod } from "../../schema/stats.ts";
import { toInstant } from "../../schema/values.ts";
import { type Principal, seesAll } from "../access/access.ts";
import type { Broker, Scans } from "../broker.ts";
import { queueDepths } from "../upkeep/queue-depths.ts";
import { type Counted, costsIn, endOf, NOTHING, readBuckets, sumOf } from "./buckets.ts";
import {
  CLASSES,
  CODE_PREFIX,
  FIELD,
  GAUGE,
  percentile,
  RESOLUTIONS,
  type Subject,
  slotOf,
  USED,
} from "./layout.ts";

/** The row of the codes beyond the limit. An agent may fail with a code of this name; it counts there. */
const REST = "other";

type Query = StatsFilter & { readonly period: StatsPeriod };
interface Scope {
  readonly target: string | null;
  readonly delegator: string | null;
}

export async function readStats(
  broker: Scans & Pick<Broker, "clock" | "counters">,
  principal: Principal,
  query: Query,
): Promise<Stats> {
  const { target, delegator } = await scopeOf(broker, principal, query);
  const resolution = RESOLUTIONS[query.period];
  const subject: Subject =
    target !== null ? `target:${target}` : delegator !== null ? `delegator:${delegator}` : "all";
  // The last bucket shows the queues as they are now, although the next sample may be half a minute away.
  if (delegator === null) await broker.counters.sampleOnce(() => queueDepths(broker));
  // A caller sees its own moves at once. Other gateways write theirs within a second.
  await broker.counters.flush();
  const last = slotOf(Date.now() + broker.clock.offset_ms, resolution);
  const slots = Array.from({ length: resolution.buckets }, (_, n) => last - resolution.buckets + 1 + n);
  const names = slots.map((slot) => keys.stats(subject, resolution.seconds, slot));
  const read = await readBuckets(broker.bulk, names);
  // An older bucket belongs to a deleted agent of the same name.
  const since = await sinceOf(broker, { target, delegator });
  const counted = read.map((fields, index) =>
    endOf(slots[index] ?? 0, resolution) > since ? fields : NOTHING,
  );
  return {
    period: query.period,
    target,
    delegator,
    bucket_seconds: resolution.seconds,
    buckets: counted.map((fields, index) => ({
      at: toInstant((slots[index] ?? 0) * resolution.seconds * 1000),
      ...figuresOf(fields),
      waiting: delegator === null ? (fields.get(GAUGE.waiting) ?? 0) : null,
      working: delegator === null ? (fields.get(GAUGE.working) ?? 0) : null,
      oldest_seconds: delegator === null ? (fields.get(GAUGE.oldest) ?? 0) : null,
    })),
    totals: totalsOf(counted),
  };
}

/** The scope that the caller asks for, or everything that concerns it. Throws `forbidden` for the figures of others. */
async function scopeOf(broker: Pick<Broker, "agents">, principal: Principal, query: Query): Promise<Scope> {
  const { target = null, delegator = null } = query;
  if (target !== null && delegator !== null) {
    throw new ErrandError("invalid_request", "Name a target or a delegator, not both.", {
      details: { issues: [{ path: "delegator", reason: "give at most one of target and delegator" }] },
    });
  }
  const own = principal.kind === "agent" ? principal.name : null;
  if (target === null && delegator === null) {
    if (seesAll(principal)) return { target, delegator };
    return own === null ? { target, delegator: principal.text } : { target: own, delegator };
  }
  if (seesAll(principal) || delegator === principal.text || (own !== null && target === own)) {
    if (target !== null) await broker.agents.get(target);
    return { target, delegator };
  }
  throw new ErrandError(
    "forbidden",
    `${principal.text} may see only the figures of its own work and of what it delegated.`,
  );
}

async function sinceOf({ agents }: Pick<Broker, "agents">, { target, delegator }: Scope): Promise<number> {
  const agent = target ?? (delegator?.startsWith("agent:") ? delegator.slice("agent:".length) : null);
  return agent === null ? 0 : agents.since(agent);
}

function figuresOf(fields: Counted) {
  const counts = (field: (index: number) => string) =>
    Array.from({ length: CLASSES }, (_, index) => fields.get(field(index)) ?? 0);
  const leases = counts(FIELD.lease);
  const answers = counts(FIELD.answer);
  const number = (field: string) => fields.get(field) ?? 0;
  const usage = usedIn(fields);
  return {
    sent: number(FIELD.sent),
    leased: sum(leases),
    completed: sum(answers),
    failed: number(FIELD.failed),
    rejected: number(FIELD.rejected),
    canceled: number(FIELD.canceled),
    time_to_lease: durationsOf(leases),
    time_to_answer: durationsOf(answers),
    ...(usage && { usage }),
  };
}

function usedIn(fields: Counted): StatsBucket["usage"] {
  const tokens = (field: string) => Math.min(Number.MAX_SAFE_INTEGER, fields.get(field) ?? 0);
  const costs = costsIn(fields);
  if (costs.length === 0 && Object.values(USED).every((field) => !fields.has(field))) return undefined;
  return {
    input_tokens: tokens(USED.input_tokens),
    output_tokens: tokens(USED.output_tokens),
    cached_tokens: tokens(USED.cached_tokens),
    reasoning_tokens: tokens(USED.reasoning_tokens),
    costs,
  };
}

const sum = (counts: readonly number[]): number => counts.reduce((all, count) => all + count, 0);

const durationsOf = (counts: readonly number[]): Durations =>
  sum(counts) === 0
    ? null
    : { median_seconds: percentile(counts, 0.5), p95_seconds: percentile(counts, 0.95) };

function totalsOf(buckets: readonly Counted[]): Stats["totals"] {
  const all = sumOf(buckets);
  const byCode = new Map<string, number>();
  for (const [field, count] of all) {
    if (!field.startsWith(CODE_PREFIX)) continue;
    const code = field.slice(CODE_PREFIX.length) || REST;
    byCode.set(code, (byCode.get(code) ?? 0) + count);
  }
  const failures = [...byCode]
    .map(([code, count]) => ({ code, count }))
    .sort((a, b) => b.count - a.count || (a.code < b.code ? -1 : 1));
  return { ...figuresOf(all), failures };
}
