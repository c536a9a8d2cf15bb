/**
 * The budgets of agents by day and month: new work is refused once one is used up. The script adds up what is used
 * (lifecycle/lua/lazy/usage.lua), exactly, in the step that accepts a report. Limit: work that was accepted before goes on.
 */
import type { PeriodBudgets } from "../../schema/budget.ts";
import { ErrandError } from "../../schema/errors.ts";
import { toInstant } from "../../schema/values.ts";
import type { Broker, Reads } from "../broker.ts";

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

/** Throws `budget_exhausted` if the agent has used as much as it may in this day or month. */
export async function requireBudgetLeft(broker: Reads & Pick<Broker, "clock">, agent: string): Promise<void> {
  const { budgets } = (await broker.agents.get(agent)).spec;
  if (budgets === null) return;
  const now = Date.now() + broker.clock.offset_ms;
  for (const period of PERIODS) {
    const limit = budgets[period];
    if (limit === undefined) continue;
    const key = broker.shards.ofAgent(agent).spentIn(toInstant(now).slice(0, NAMED[period]));
    const [tokens, cost] = await broker.redis.hmget(key, agent, `${agent} ${limit.currency ?? ""}`);
    const used = { tokens: Number(tokens ?? 0), cost: Number(cost ?? 0) };
    const name = (["tokens", "cost"] as const).find(
      (one) => used[one] >= (limit[one] ?? Number.POSITIVE_INFINITY),
    );
    if (name !== undefined)
      throw exhausted(agent, period, { name, used: used[name], limit: limit[name] ?? 0 }, now);
  }
}

function exhausted(
  agent: string,
  period: Period,
  { name, used, limit }: { readonly name: "tokens" | "cost"; readonly used: number; readonly limit: number },
  now: number,
): ErrandError {
  const end = endOf(period, now);
  const text = (amount: number) => amount.toLocaleString("en", { maximumSignificantDigits: 12 });
  return new ErrandError(
    "budget_exhausted",
    `Agent '${agent}' has used ${text(used)} of its ${name} for this ${period}, of ${text(limit)}.`,
    {
      retry_after_seconds: Math.ceil((end - now) / 1000),
      details: { agent, period, amount: name, used, limit, resets_at: toInstant(end) },
    },
  );
}
