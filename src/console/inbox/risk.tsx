import { type Risk, riskOf } from "../../schema/risk.ts";
import { agentOf } from "../data/agents.ts";
import type { ListedDelegation } from "../data/listed.ts";
import { readAction } from "../needs/proposal.ts";

/** The highest risk of the proposed actions, as the operator set it. What the agent says of it does not count. */
function riskFor({ target, interrupt }: ListedDelegation): Risk | null {
  const rules = agentOf(target)?.risks ?? [];
  const risks = (interrupt?.requests ?? []).map((request) => {
    const action = readAction(request);
    return action && riskOf(rules, action.name);
  });
  return (["high", "medium", "low"] as const).find((risk) => risks.includes(risk)) ?? null;
}

export function RiskMark({ listed }: { readonly listed: ListedDelegation }) {
  const risk = riskFor(listed);
  return risk && <span class={`risk ${risk}`}>{risk} risk</span>;
}
