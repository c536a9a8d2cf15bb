/** Reads rules. Their creator and the operator may revoke them; approvers and viewers see all, as they see delegations. */
import { ErrandError } from "../../schema/errors.ts";
import type { Rule } from "../../schema/rule.ts";
import { toInstant } from "../../schema/values.ts";
import { type Principal, seesAll } from "../access/access.ts";
import type { Broker } from "../broker.ts";
import type { Position, RuleAt } from "./store.ts";
import { stateOf } from "./stored-rule.ts";

type Needs = Pick<Broker, "rules">;

export const noRule = (id: string): ErrandError =>
  new ErrandError("not_found", `There is no rule '${id}'.`, { recovery: "List your rules to find its id." });

/** For a stranger it does not exist. `what`: what only its creator and the operator may do. */
export async function findRule(
  { rules }: Needs,
  principal: Principal,
  id: string,
  what: string | null = null,
): Promise<RuleAt> {
  const found = await rules.find(id);
  const isOwn = principal.kind === "operator" || found?.rule.doc.by === principal.text;
  if (!found || !(isOwn || seesAll(principal))) throw noRule(id);
  if (!isOwn && what !== null)
    throw new ErrandError("forbidden", `Only the creator of the rule and the operator may ${what}.`);
  return found;
}

export async function describeRule(broker: Needs, principal: Principal, id: string): Promise<Rule> {
  return describe(await findRule(broker, principal, id));
}

function describe({ rule, now }: RuleAt): Rule {
  const { id, doc, max_uses, uses, expires_at, created_at, revoked_at } = rule;
  const { agent, action, decision, only_these_arguments, by, note } = doc;
  return {
    ...{ id, by, agent, action, arguments: doc.arguments, only_these_arguments, decision },
    ...{ state: stateOf(rule, now), uses, max_uses },
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
  { rules }: Needs,
  principal: Principal,
  { agent, cursor, limit }: RulesQuery,
): Promise<RulePage> {
  const after = cursor === undefined ? null : parseCursor(cursor);
  const isAll = seesAll(principal);
  const index = !isAll ? `by:${principal.text}` : agent === undefined ? "all" : `for:${agent}`;
  const { rules: found, next } = await rules.list(index, after, limit);
  return {
    rules: found.filter(({ rule }) => agent === undefined || rule.doc.agent === agent).map(describe),
    next_cursor: next && `${next.at}_${next.id}`,
  };
}

function parseCursor(cursor: string): Position {
  const [, at, id] = /^(\d{1,15})_(rul_[0-9a-z]{26})$/.exec(cursor) ?? [];
  if (at !== undefined && id !== undefined) return { at: Number(at), id };
  throw new ErrandError("invalid_request", "The cursor is not valid.", {
    details: { issues: [{ path: "cursor", reason: "send back next_cursor unchanged" }] },
  });
}
