/** What the form of a delegation has, as it is kept until it is sent. */
import * as z from "zod";
import type { Part } from "../../schema/a2a.ts";
import { DEFAULT_PRIORITY } from "../../schema/delegation.ts";
import type { FirstValues } from "./again.ts";

export const valuesSchema = z.object({
  target: z.string(),
  task: z.string(),
  priority: z.string(),
  deadline: z.string(),
  parent: z.string(),
  approve: z.string(),
  /** The amounts of its budget; empty: any. */
  tokens: z.string(),
  cost: z.string(),
  currency: z.string(),
  minutes: z.string(),
  attempts: z.string(),
  /** Whether the broker asks for more when the budget is used up; else the work fails. */
  asks: z.boolean(),
  /** The names of the files: a reload loses what is in them. */
  files: z.array(z.string()),
  /** Whether it is sent without the other parts of the first task. */
  isBare: z.boolean(),
  /** What the address asked for when it was begun. */
  address: z.string(),
  /** The idempotency key of a request that is on its way, or whose answer was lost; empty: none. */
  sentAs: z.string(),
});
export type Values = z.infer<typeof valuesSchema>;
export type Field = Exclude<keyof Values, "isBare" | "address" | "sentAs" | "asks">;

/** `first`: of a delegation that is delegated again. */
export function startValues(params: URLSearchParams, first: FirstValues | null): Values {
  const [target, parent] = [params.get("target") ?? "", params.get("parent") ?? ""];
  return {
    target: first?.target ?? target,
    task: first?.task ?? "",
    priority: String(first?.priority ?? DEFAULT_PRIORITY),
    deadline: "",
    parent,
    approve: first?.approve ?? "",
    ...(first?.budget ?? { tokens: "", cost: "", currency: "", minutes: "", attempts: "", asks: false }),
    files: [],
    isBare: false,
    address: JSON.stringify([target, parent]),
    sentAs: "",
  };
}

/** What was typed before, with what another address asks for now. */
export function withAddress(kept: Values, start: Values): Values {
  if (kept.address === start.address) return kept;
  const { address, target, parent } = start;
  return { ...kept, address, ...(target !== "" && { target }), ...(parent !== "" && { parent }) };
}

export const partsOf = (first: FirstValues | null, { isBare }: Values): readonly Part[] =>
  isBare ? [] : (first?.parts ?? []);
