/** The budgets of an agent or a token by day and month, as fields. Empty fields: no budget. */
import type { TargetedEvent } from "preact";
import type { AgentPatch } from "../../schema/agent.ts";
import type { PeriodBudgets } from "../../schema/budget.ts";
import { adopt } from "../app/adopt.ts";
import { styles } from "../ui/amounts.css";

adopt(styles);

const PERIODS = ["day", "month"] as const;

export function BudgetFields({ budgets = {} }: { readonly budgets?: PeriodBudgets | undefined }) {
  return PERIODS.map((period) => {
    const { tokens, cost, currency } = budgets[period] ?? {};
    const label = `Budget a ${period}`;
    return (
      <label key={period} class="wide">
        <span>
          {label} <small>tokens, and a cost with its currency; then new work is refused, UTC</small>
        </span>
        <span class="amounts" onInput={requireCurrency}>
          <input
            type="number"
            name={`${period}_tokens`}
            aria-label={`${label}: tokens`}
            min={1}
            placeholder="any tokens"
            defaultValue={tokens === undefined ? "" : String(tokens)}
          />
          <input
            type="number"
            name={`${period}_cost`}
            aria-label={`${label}: cost`}
            min={0}
            step="any"
            placeholder="any cost"
            defaultValue={cost === undefined ? "" : String(cost)}
          />
          <input
            name={`${period}_currency`}
            aria-label={`${label}: currency`}
            pattern="[A-Za-z]{3}"
            title="Three letters, for example USD"
            placeholder="USD"
            defaultValue={currency ?? ""}
          />
        </span>
      </label>
    );
  });
}

/** A cost needs its currency, and the page says so at its field. */
function requireCurrency({ currentTarget }: TargetedEvent<HTMLElement>): void {
  const [cost, currency] = ["cost", "currency"].map((name) =>
    currentTarget.querySelector<HTMLInputElement>(`[name$=${name}]`),
  );
  if (cost && currency) currency.required = cost.value !== "";
}

/** What the fields of a new token say; undefined: nothing. The broker refuses what is no budget. */
export function budgetsIn(form: FormData): PeriodBudgets | undefined {
  const given = PERIODS.flatMap((period) => {
    const text = (name: string) => String(form.get(`${period}_${name}`) ?? "").trim();
    const [tokens, cost, currency] = [text("tokens"), text("cost"), text("currency").toUpperCase()];
    const budget = {
      ...(tokens !== "" && { tokens: Number(tokens) }),
      ...(cost !== "" && { cost: Number(cost) }),
      ...(currency !== "" && { currency }),
    };
    return Object.keys(budget).length > 0 ? [[period, budget] as const] : [];
  });
  return given.length > 0 ? Object.fromEntries(given) : undefined;
}

/** The change of the fields; nothing if they are as before. The broker refuses what is no budget. */
export function budgetsPatch(
  before: PeriodBudgets = {},
  text: (name: string) => string,
): Pick<AgentPatch, "budgets"> {
  const changes = PERIODS.flatMap((period) => {
    const numberOf = (name: string) => Number(text(`${period}_${name}`)) || null;
    const currency = text(`${period}_currency`).toUpperCase() || null;
    const given = { tokens: numberOf("tokens"), cost: numberOf("cost"), currency };
    const isEmpty = Object.values(given).every((one) => one === null);
    return isEqual(given, before[period]) ? [] : [[period, isEmpty ? null : given] as const];
  });
  return changes.length === 0 ? {} : { budgets: Object.fromEntries(changes) };
}

const isEqual = (
  given: Readonly<Record<"tokens" | "cost" | "currency", unknown>>,
  before: PeriodBudgets["day"],
): boolean =>
  (["tokens", "cost", "currency"] as const).every((name) => given[name] === (before?.[name] ?? null));
