/** The values of a delegation that is delegated again, as the form shows them. */
import { type Part, textOf } from "../../schema/a2a.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { route } from "../app/route.ts";
import { useLoaded } from "../ui/use-loaded.ts";

export interface FirstValues {
  readonly target: string;
  readonly task: string;
  readonly priority: number;
  /** Its names of actions, or `all`; empty: none. */
  readonly approve: string;
  readonly budget: Readonly<Record<"tokens" | "cost" | "currency" | "minutes" | "attempts", string>> & {
    readonly asks: boolean;
  };
  /** What the task has besides its text: files, links and data. */
  readonly parts: readonly Part[];
}

const text = (value: unknown): string => String(value ?? "");

export function firstValues({ target, message, priority, auto_approve, budget }: Delegation): FirstValues {
  const { tokens, cost, currency, seconds, attempts } = budget?.limit ?? {};
  const actions = typeof auto_approve === "object" ? auto_approve.actions.join(", ") : "";
  return {
    ...{ target, priority, task: textOf({ parts: message.parts }) },
    approve: auto_approve === true ? "all" : actions,
    budget: {
      ...{ tokens: text(tokens), cost: text(cost), currency: text(currency) },
      ...{ minutes: text(seconds && seconds / 60), attempts: text(attempts) },
      asks: budget?.on_budget === "ask",
    },
    parts: message.parts.filter(({ text }) => text === undefined),
  };
}

/** Of the delegation that the address names. Null: not read yet, or it names none. */
export function useFirstValues() {
  const id = route.value.params.get("again") ?? "";
  const { value, error } = useLoaded(id, async ({ delegator }, signal) =>
    id === "" ? null : firstValues(await delegator.get(id, { signal })),
  );
  return { first: value, error, isReading: id !== "" && value === null && error === null };
}
