/** What the form delegates. */
import type { DelegateOptions, TaskInput } from "../../client/delegator-options.ts";
import type { MessageInput, Part } from "../../schema/a2a.ts";
import type { AutoApprove } from "../../schema/auto-approve.ts";
import type { Connection } from "../data/connection.ts";
import { partsOfFiles } from "./uploads.ts";
import type { Values } from "./values.ts";

/** Nothing if no amount is given. The broker refuses what is no budget. */
function budgetOf({
  tokens,
  cost,
  currency,
  minutes,
  attempts,
  asks,
}: Values): Pick<TaskInput, "budget" | "on_budget"> {
  // With so many digits, 31 seconds as minutes are 31 seconds again.
  const amount = (text: string, times = 1) =>
    text === "" ? undefined : Number((Number(text) * times).toPrecision(15));
  const budget = {
    tokens: amount(tokens),
    cost: amount(cost),
    currency: currency.trim().toUpperCase() || undefined,
    seconds: amount(minutes, 60),
    attempts: amount(attempts),
  };
  if (Object.values(budget).every((one) => one === undefined)) return {};
  return { budget, ...(asks && { on_budget: "ask" }) };
}

const autoApproveOf = (text: string): AutoApprove =>
  text === "all" ? true : { actions: text.split(/[\s,]+/).filter(Boolean) };

/** With the parts that are kept of an earlier task. Uploads what is too large for the message. */
export async function inputOf(
  values: Values,
  files: readonly File[],
  kept: readonly Part[],
  connection: Connection,
  check: () => void,
): Promise<[input: TaskInput, options: DelegateOptions]> {
  const text = (name: "target" | "task" | "deadline" | "parent" | "approve"): string => values[name].trim();
  const parts = [...kept, ...(await partsOfFiles(files, connection, check))];
  const message: MessageInput = { parts: [{ text: text("task") }, ...parts] };
  return [
    {
      target: text("target"),
      ...(parts.length > 0 ? { message } : { task: text("task") }),
      priority: Number(values.priority),
      ...(text("approve") !== "" && { auto_approve: autoApproveOf(text("approve")) }),
      ...budgetOf(values),
    },
    {
      ...(text("deadline") !== "" && { deadline: new Date(text("deadline")) }),
      ...(text("parent") !== "" && { parentId: text("parent") }),
    },
  ];
}
