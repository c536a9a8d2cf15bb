/**
 * Creates and revokes rules. A rule answers what its creator may answer: all questions of the agent, if an approver or the
 * operator created it, and otherwise those of the creator's own delegations.
 */
import { randomId } from "../../redis/shards.ts";
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { RuleRequest } from "../../schema/rule-request.ts";
import type { Principal } from "../access/access.ts";
import type { Identity } from "../access/revocations.ts";
import type { Broker } from "../broker.ts";
import { bodyHash, derivedId, requireKey } from "../delegations/idempotency.ts";
import { type AuditWriter, audit } from "../upkeep/audit.ts";
import { toPath } from "./paths.ts";
import { findRule, noRule } from "./read.ts";
import { type StoredRule, scopeOf } from "./stored-rule.ts";

const ID_LENGTH = 26;

type Changes = AuditWriter & Pick<Broker, "agents" | "rules" | "tokens">;

interface Creator {
  readonly principal: Principal;
  readonly identity: Identity;
  readonly idempotencyKey?: string | undefined;
}

/** Returns whether an earlier request with the same key created it. */
export async function createRule(
  broker: Changes,
  { principal, identity, idempotencyKey }: Creator,
  request: RuleRequest,
): Promise<{ id: string; replayed: boolean }> {
  const scope = scopeOf(principal);
  if (scope === null) throw new ErrandError("forbidden", `${principal.text} may not answer questions.`);
  if (idempotencyKey !== undefined) requireKey(idempotencyKey);
  requirePaths(request);
  const { agent, for_seconds, expires_at, max_uses = null, ...rest } = request;
  const body = bodyHash(request);
  const id = `rul_${idempotencyKey === undefined ? randomId(ID_LENGTH) : derivedId(principal.text, idempotencyKey)}`;
  // Before the checks: what was created stays created, even if it would be refused by now.
  const earlier = idempotencyKey === undefined ? null : await broker.rules.find(id);
  if (earlier) return { id: requireBody(earlier.rule, body), replayed: true };
  // Not from the cache, as where a rule is used.
  const found = await broker.agents.read(agent);
  if (!found) throw unknownAgent(agent);
  if (found.spec.approvals === "person") throw takesNone(agent);
  const token = broker.tokens.holderOf(identity);
  const only_these_arguments = request.only_these_arguments ?? request.decision === "approve";
  const doc = { ...rest, agent, only_these_arguments, by: principal.text, token, body };
  const ends = {
    expires_at: expires_at === undefined ? null : Date.parse(expires_at),
    for_ms: await forMs(broker, token, for_seconds),
    max_uses,
  };
  switch (await broker.rules.create({ id, doc, scope, ...ends })) {
    case 0:
      throw unknownAgent(agent);
    case -1:
      throw new ErrandError("invalid_request", "The rule would have ended already.", {
        details: { issues: [{ path: "expires_at", reason: "must be in the future" }] },
      });
    case -2:
      throw tooMany(
        "rules",
        `You have ${LIMITS.rules.value} rules for agents of this shard, which is the limit.`,
      );
    case -3:
      throw tooMany(
        "agent_rules",
        `Agent '${agent}' has ${LIMITS.agent_rules.value} such rules, which is the limit.`,
      );
    case 2: {
      const found = await broker.rules.find(id);
      if (!found) throw noRule(id);
      return { id: requireBody(found.rule, body), replayed: true };
    }
    case 1:
      await audit(broker, principal, "rule.create", id, {
        agent,
        action: doc.action,
        decision: doc.decision,
      });
      return { id, replayed: false };
  }
}

/** How long the rule applies: no longer than its creator's token, whose expiry is by the clock of this machine. */
async function forMs(
  { tokens }: Pick<Broker, "tokens">,
  token: string,
  for_seconds: number | undefined,
): Promise<number | null> {
  const expiry = await tokens.readExpiry(token);
  if (expiry === undefined)
    throw new ErrandError("unauthenticated", "The token is unknown, expired or revoked.");
  const wanted = for_seconds === undefined ? null : Math.round(for_seconds * 1000);
  if (expiry === null) return wanted;
  return Math.min(wanted ?? Number.POSITIVE_INFINITY, Math.max(0, expiry - Date.now()));
}

/** Refuses a prefix that is no plain path: it could never fit. */
function requirePaths({ arguments: constraints }: RuleRequest): void {
  const issues = constraints.flatMap(({ path_prefix }, at) =>
    path_prefix === undefined || toPath(path_prefix)
      ? []
      : [
          {
            path: `arguments.${at}.path_prefix`,
            reason: "must be a plain path: no '.', '..', '//', '\\', '%', nor what a shell expands",
          },
        ],
  );
  if (issues.length > 0)
    throw new ErrandError("invalid_request", "A path of the rule has more than one reading.", {
      details: { issues },
    });
}

function requireBody(rule: StoredRule, body: string): string {
  if (rule.doc.body === body) return rule.id;
  throw new ErrandError(
    "idempotency_conflict",
    `This Idempotency-Key was used with another body, for ${rule.id}.`,
  );
}

const unknownAgent = (agent: string): ErrandError =>
  new ErrandError("agent_unknown", `There is no agent '${agent}'.`);

const takesNone = (agent: string): ErrandError =>
  new ErrandError("approval_required", `Agent '${agent}' takes answers only from people.`, {
    recovery: "Answer its questions one by one, or ask the operator to change its approvals.",
  });

const tooMany = (limit: "rules" | "agent_rules", message: string): ErrandError =>
  new ErrandError("limit_reached", message, {
    details: { limit, maximum: LIMITS[limit].value },
    recovery: "Revoke rules that are no longer used.",
  });

/** Once this returns, no gateway answers by the rule. Safe to repeat. */
export async function revokeRule(broker: Changes, principal: Principal, id: string): Promise<void> {
  const { rule } = await findRule(broker, principal, id, "revoke it");
  const done = await broker.rules.revoke(rule);
  if (done === "revoked")
    await audit(broker, principal, "rule.revoke", id, { by: rule.doc.by, agent: rule.doc.agent });
}
