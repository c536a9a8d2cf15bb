/** Reads rules. Their creator and the operator may revoke them; approvers and viewers see all, as they see delegations. */
import { ErrandError } from "../../schema/errors.ts";
import { RULE_ID, type Rule } from "../../schema/rule.ts";
import { toInstant } from "../../schema/values.ts";
import { isOfEarlierAgent, type Principal, seesAll } from "../access/access.ts";
import type { Broker } from "../broker.ts";
import { parseCursor, toCursor } from "../list-cursor.ts";
import type { RuleAt } from "./store.ts";
import { stateOf } from "./stored-rule.ts";

type Needs = Pick<Broker, "agents" | "rules" | "tokens">;

export const noRule = (id: string): ErrandError =>
  new ErrandError("not_found", `There is no rule '${id}'.`, { recovery: "List your rules to find its id." });

/** Throws `not_found` also for a principal that may not see the rule. `what`: what only its creator and the operator may do. */
export async function findRule(
  broker: Needs,
  principal: Principal,
  id: string,
  what: string | null = null,
): Promise<RuleAt> {
  const stored = await broker.rules.find(id);
  const found = stored && (await isOfEarlierAgent(broker, principal, stored.rule.created_at)) ? null : stored;
  const isOwn = principal.kind === "operator" || found?.rule.doc.by === principal.text;
  if (!found || !(isOwn || seesAll(principal))) throw noRule(id);
  if (!isOwn && what !== null)
    throw new ErrandError("forbidden", `Only the creator of the rule and the operator may ${what}.`);
  return found;
}

export async function describeRule(broker: Needs, principal: Principal, id: string): Promise<Rule> {
  return describe(broker, await findRule(broker, principal, id));
}

async function describe({ tokens }: Needs, { rule, now }: RuleAt): Promise<Rule> {
  const { id, doc, max_uses, uses, expires_at, created_at, revoked_at } = rule;
  const { agent, action, decision, only_these_arguments, by, note, token } = doc;
  const stored = stateOf(rule, now);
  // The token's revocation was cut short, or another operator's token is configured.
  const isRevoked = stored === "active" && !(await tokens.isHolder(token));
  return {
    ...{ id, by, agent, action, arguments: doc.arguments, only_these_arguments, decision },
    ...{ state: isRevoked ? "revoked" : stored, uses, max_uses },
    expires_at: expires_at === null ? null : toInstant(expires_at),
    note: note ?? null,
    last_uses: rule.last.split("\n").flatMap((line) => {
      const [at = "", delegation_id, interrupt_id] = line.split(" ");
      if (delegation_id === undefined || interrupt_id === undefined) return [];
      return [{ at: toInstant(Number(at)), delegation_id, interrupt_id }];
    }),
    created_at: toInstant(created_at),
    revoked_at: revoked_at === null ? null : toInstant(revoked_at),
  };
}

export interface RulePage {
  readonly rules: Rule[];
  readonly next_cursor: string | null;
}

export interface RulesQuery {
  readonly agent?: string | undefined;
  readonly cursor?: string | undefined;
  readonly limit: number;
}

/** A principal's own rules, or all of them for those who see everything; oldest first. */
export async function listRules(
  broker: Needs,
  principal: Principal,
  { agent, cursor, limit }: RulesQuery,
): Promise<RulePage> {
  const after = cursor === undefined ? null : parseCursor(cursor, RULE_ID);
  const isAll = seesAll(principal);
  const index = !isAll ? `by:${principal.text}` : agent === undefined ? "all" : `for:${agent}`;
  const { rules: found, next } = await broker.rules.list(index, after, limit);
  const rules: Rule[] = [];
  for (const one of found) {
    const isShown = agent === undefined || one.rule.doc.agent === agent;
    if (isShown && !(await isOfEarlierAgent(broker, principal, one.rule.created_at)))
      rules.push(await describe(broker, one));
  }
  return { rules, next_cursor: next && toCursor(next) };
}
