/**
 * The budgets of agents and of delegators by day and month: new work is refused once one is used up. The script adds up what is
 * used (lifecycle/lua/lazy/usage.lua), exactly, in the step that accepts a report. Limit: work that was accepted before goes on.
 */
import type { ShardKeys } from "../../redis/keys.ts";
import type { PeriodBudgets, PeriodBudgetsShown } from "../../schema/budget.ts";
import { ErrandError } from "../../schema/errors.ts";
import { toInstant } from "../../schema/values.ts";
import type { Principal } from "../access/access.ts";
import type { Broker, Reads } from "../broker.ts";

type Counted = Pick<Broker, "clock" | "redis" | "shards">;
type Period = keyof PeriodBudgets;
const PERIODS: readonly Period[] = ["day", "month"];
/** How much of an ISO instant names the period. */
const NAMED: Readonly<Record<Period, number>> = { day: "2026-11-28".length, month: "2026-11".length };

/** When the period ends that this instant is in. */
function endOf(period: Period, now: number): number {
  const at = new Date(now);
  const [year, month, day] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()];
  return period === "day" ? Date.UTC(year, month, day + 1) : Date.UTC(year, month + 1, 1);
}

interface Use {
  readonly period: Period;
  readonly limit: NonNullable<PeriodBudgets[Period]>;
  readonly used: { readonly tokens: number; readonly cost: number };
}

/** What was used in each period that has a limit, by the sums of these shards; one command for each of both. */
function usesOf(
  { redis }: Pick<Broker, "redis">,
  shards: readonly ShardKeys[],
  field: string,
  budgets: PeriodBudgets,
  now: number,
): Promise<Use[]> {
  const uses = PERIODS.map(async (period) => {
    const limit = budgets[period];
    if (limit === undefined) return [];
    const name = toInstant(now).slice(0, NAMED[period]);
    const sums = await Promise.all(
      shards.map((shard) => redis.hmget(shard.spentIn(name), field, `${field} ${limit.currency ?? ""}`)),
    );
    const sum = (at: 0 | 1) => sums.reduce((total, amounts) => total + Number(amounts[at] ?? 0), 0);
    // Costs have 12 digits; their binary fractions have more.
    return [{ period, limit, used: { tokens: sum(0), cost: Number(sum(1).toPrecision(12)) } }];
  });
  return Promise.all(uses).then((all) => all.flat());
}

/** Throws `budget_exhausted` if the agent has used as much as it may in this day or month. */
export async function requireBudgetLeft(broker: Reads & Pick<Broker, "clock">, agent: string): Promise<void> {
  const { budgets } = (await broker.agents.get(agent)).spec;
  if (budgets === null) return;
  const now = Date.now() + broker.clock.offset_ms;
  const uses = await usesOf(broker, [broker.shards.ofAgent(agent)], agent, budgets, now);
  requireLeft(uses, { agent }, `Agent '${agent}'`, now);
}

/** All that counts for a principal. Its trees are in all shards, each with a sum of its own. */
const delegatorsUses = (broker: Counted, principal: Principal, budgets: PeriodBudgets, now: number) =>
  usesOf(broker, broker.shards.all, `by:${principal.text}`, budgets, now);

/** The same for the principal and the budgets of its token, if it has any. */
export async function requireDelegatorsBudgetLeft(broker: Counted, principal: Principal): Promise<void> {
  const { budgets, text } = principal;
  if (budgets === undefined) return;
  const now = Date.now() + broker.clock.offset_ms;
  requireLeft(await delegatorsUses(broker, principal, budgets, now), { delegator: text }, text, now);
}

/** What the principal's token allows by day and month, and what was used; undefined without budgets. */
export async function budgetsShown(
  broker: Counted,
  principal: Principal,
): Promise<PeriodBudgetsShown | undefined> {
  if (principal.budgets === undefined) return undefined;
  const now = Date.now() + broker.clock.offset_ms;
  const uses = await delegatorsUses(broker, principal, principal.budgets, now);
  return Object.fromEntries(
    uses.map(({ period, limit, used }) => [
      period,
      { limit, used, resets_at: toInstant(endOf(period, now)) },
    ]),
  );
}

function requireLeft(
  uses: readonly Use[],
  whose: Readonly<Record<string, string>>,
  name: string,
  now: number,
): void {
  for (const { period, limit, used } of uses) {
    const amount = (["tokens", "cost"] as const).find(
      (one) => used[one] >= (limit[one] ?? Number.POSITIVE_INFINITY),
    );
    if (amount === undefined) continue;
    const end = endOf(period, now);
    const most = limit[amount] ?? 0;
    const text = (number: number) => number.toLocaleString("en", { maximumSignificantDigits: 12 });
    const { currency } = limit;
    const unit = amount === "cost" ? (currency ?? "") : "tokens";
    throw new ErrandError(
      "budget_exhausted",
      `${name} has used ${text(used[amount])} of ${text(most)} ${unit} for this ${period} (UTC).`,
      {
        retry_after_seconds: Math.ceil((end - now) / 1000),
        details: {
          ...{ ...whose, period, amount, used: used[amount], limit: most, resets_at: toInstant(end) },
          ...(amount === "cost" && currency !== undefined && { currency }),
        },
      },
    );
  }
}
