/** Approves the same action, with the same arguments, for a while: a rule beside the answer. */
import { randomKey } from "../../client/random-key.ts";
import { Rules } from "../../client/rules.ts";
import { isBudgetQuestion } from "../../schema/budget-question.ts";
import type { Action, Interrupt } from "../../schema/delegation.ts";
import type { RuleInput } from "../../schema/rule-request.ts";
import { agents } from "../data/agents.ts";
import type { Connection } from "../data/connection.ts";

export const SAME_MINUTES = 20;
export const SAME = `and the same that comes in the next ${SAME_MINUTES} min`;
/** A rule has at most so many constraints, and bytes as JSON. */
const MAX_ARGUMENTS = 32;
const MAX_BYTES = 3_500;

/** Null for what no rule answers or can name whole, and where the agent wants a person. */
export function sameAgain(
  agent: string,
  { id, kind }: Pick<Interrupt, "id" | "kind">,
  { name, arguments: given }: Action,
) {
  if (kind !== "input" || isBudgetQuestion(id)) return null;
  const rule: RuleInput = {
    ...{ agent, action: name, decision: "approve", for_seconds: SAME_MINUTES * 60 },
    arguments: Object.entries(given).map(([argument, equals]) => ({ name: argument, equals })),
  };
  const isNamed = Object.keys(given).every((one) => one !== "" && one.length <= 256);
  const isFitting = new TextEncoder().encode(JSON.stringify(rule)).length <= MAX_BYTES;
  const count = Object.keys(given).length;
  if (!isNamed || !isFitting || count > MAX_ARGUMENTS || name.includes("*")) return null;
  if (agents.value?.find((one) => one.name === agent)?.approvals === "person") return null;
  const idempotencyKey = randomKey();
  return async ({ options }: Connection): Promise<void> => {
    await new Rules(options).create(rule, { idempotencyKey });
  };
}
