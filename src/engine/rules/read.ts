/** Reads rules. Their creator and the operator may revoke them; approvers and viewers see all, as they see delegations. */
import { ErrandError } from "../../schema/errors.ts";
import type { Rule } from "../../schema/rule.ts";
import { toInstant } from "../../schema/values.ts";
import { type Principal, seesAll } from "../access/access.ts";
import type { Broker } from "../broker.ts";
import type { Position, RuleAt } from "./store.ts";
import { stateOf } from "./stored-rule.ts";

type Needs = Pick<Broker, "agents" | "rules" | "tokens">;

export const noRule = (id: string): ErrandError =>
  new ErrandError("not_found", `There is no rule '${id}'.`, { recovery: "List your rules to find its id." });

/** For a stranger it does not exist. `what`: what only its creator and the operator may do. */
export async function findRule(
  broker: Needs,
  principal: Principal,
  id: string,
  what: string | null = null,
): Promise<RuleAt> {
  const stored = await broker.rules.find(id);
  const found = stored && (await isOfEarlier(broker, principal, stored)) ? null : stored;
  const isOwn = principal.kind === "operator" || found?.rule.doc.by === principal.text;
  if (!found || !(isOwn || seesAll(principal))) throw noRule(id);
  if (!isOwn && what !== null)
    throw new ErrandError("forbidden", `Only the creator of the rule and the operator may ${what}.`);
  return found;
}

/** Whether a deleted agent of the same name created it, for example while it was being deleted. */
const isOfEarlier = async ({ agents }: Needs, { kind, name }: Principal, { rule }: RuleAt) =>
  kind === "agent" && rule.created_at < (await agents.since(name));

export async function describeRule(broker: Needs, principal: Principal, id: string): Promise<Rule> {
  return describe(broker, await findRule(broker, principal, id));
}

async function describe({ tokens }: Needs, { rule, now }: RuleAt): Promise<Rule> {
  const { id, doc, max_uses, uses, expires_at, created_at, revoked_at } = rule;
  const { agent, action, decision, only_these_arguments, by, note, token } = doc;
  const stored = stateOf(rule, now);
  // A revocation of its token that was cut short.
  const isRevoked = stored === "active" && token !== "" && !(await tokens.isValid(token));
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
  const after = cursor === undefined ? null : parseCursor(cursor);
  const isAll = seesAll(principal);
  const index = !isAll ? `by:${principal.text}` : agent === undefined ? "all" : `for:${agent}`;
  const { rules: found, next } = await broker.rules.list(index, after, limit);
  const rules: Rule[] = [];
  for (const one of found) {
    const isShown = agent === undefined || one.rule.doc.agent === agent;
    if (isShown && !(await isOfEarlier(broker, principal, one))) rules.push(await describe(broker, one));
  }
  return { rules, next_cursor: next && `${next.at}_${next.id}` };
}

function parseCursor(cursor: string): Position {
  const [, at, id] = /^(\d{1,15})_(rul_[0-9a-z]{26})$/.exec(cursor) ?? [];
  if (at !== undefined && id !== undefined) return { at: Number(at), id };
  throw new ErrandError("invalid_request", "The cursor is not valid.", {
    details: { issues: [{ path: "cursor", reason: "send back next_cursor unchanged" }] },
  });
}
