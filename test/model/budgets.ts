/** The budgets of a walk: what trees have used, and what happens beyond. Limit: tokens only; the broker's clock has seconds. */
import { isTerminal, type State } from "../../src/schema/delegation.ts";
import { LIMITS } from "../../src/schema/limits.ts";
import type { AskedQuestion, Item, ModelBudget } from "./item.ts";

const GRACE = LIMITS.budget_grace.value;
const ASKABLE: readonly State[] = ["submitted", "working", "awaiting_children"];

export const newBudget = (tokens: number, asks: boolean): ModelBudget => ({
  tokens,
  asks,
  isOver: false,
  overAt: null,
  stopAt: null,
  proposed: 0,
});

/** It, or a delegation above it, has a budget. */
export const isCounted = ({ budget, parent }: Item): boolean =>
  budget !== null || (parent !== null && isCounted(parent));

/** What it and everything under it have used. */
export const usedBy = ({ usage, children }: Item): number =>
  usage.reduce((sum, { before, now }) => sum + before + now, 0) +
  children.reduce((sum, child) => sum + usedBy(child), 0);

/** Notes that a budget is exceeded, after each step: only reports change what is used. It counts on after the end. */
export function judgeBudget(item: Item, now: number): void {
  const { budget, lease, state } = item;
  if (!budget || budget.isOver || usedBy(item) <= budget.tokens) return;
  if (isTerminal(state)) {
    budget.isOver = true;
    return;
  }
  const stopAt = now + (lease ? GRACE : 0);
  Object.assign(budget, { isOver: true, overAt: now, stopAt });
}

/** What the sweep does about the budget; null: nothing. */
export function dueOfBudget({ budget, lease, state }: Item, now: number) {
  if (!budget) return null;
  const isDue = (at: number | null) => at !== null && now >= at;
  if (lease && isDue(budget.overAt)) return "overrun";
  if (!isDue(budget.stopAt)) return null;
  if (!budget.asks) return "exceed";
  return ASKABLE.includes(state) ? "ask_budget" : null;
}

export function noted(budget: ModelBudget, now: number): void {
  Object.assign(budget, { overAt: null, stopAt: Math.max(budget.stopAt ?? 0, now + GRACE) });
}

/** Only a worker that has it gets some time. */
export function dropped(budget: ModelBudget | null, now: number): void {
  if (budget?.stopAt != null) budget.stopAt = budget.overAt ?? Math.min(budget.stopAt, now);
}

export function reclaimed(budget: ModelBudget | null): void {
  if (budget?.overAt != null) budget.stopAt = budget.overAt + GRACE;
}

/** Nobody gets it. */
export const isStopped = (budget: ModelBudget | null, now: number): boolean =>
  budget !== null && budget.stopAt !== null && now >= budget.stopAt;

/** The broker's question; `version`: of its event. */
export function budgetQuestion(item: Item, budget: ModelBudget, version: number): AskedQuestion {
  const used = usedBy(item);
  let more = 2 * budget.tokens;
  while (more <= used) more *= 2;
  Object.assign(budget, { overAt: null, stopAt: null, proposed: more });
  return {
    kind: "input",
    shape: "budget",
    key: `budget ${version}`,
    id: `int_budget_${version}`,
    requests: ["budget"],
    body: "",
    answer: null,
  };
}

/** Names the broker's question by the event that it has now, one later than before. */
export function renumber(item: Item): void {
  const { open, questions, version } = item;
  if (open?.question.shape !== "budget") return;
  const question = { ...open.question, key: `budget ${version}`, id: `int_budget_${version}` };
  item.open = { ...open, question };
  questions.splice(-1, 1, question);
}

export const raised = (budget: ModelBudget): void =>
  void Object.assign(budget, { tokens: budget.proposed, isOver: false });
