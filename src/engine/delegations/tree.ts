/**
 * Trees of delegations: the ancestors of a child, the limit on depth, and the check for loops. Limit: a parent lists its
 * child before the child exists. If the gateway dies before the submit, the entry stays, and costs a cancel one look-up.
 */
import type { Ancestor } from "../../lifecycle/fields.ts";
import { type Inherited, inheritedFrom } from "../../lifecycle/stored-budget.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { isTerminal, type State } from "../../schema/delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import { canSee, type Principal, toPrincipal } from "../access/access.ts";
import { type Warns, warn } from "../after-move.ts";
import type { Broker, Reads, Records } from "../broker.ts";
import { refusal } from "../errors.ts";
import { type Lists, list } from "./list.ts";
import { read } from "./read.ts";

export interface Lineage {
  readonly ancestors: readonly Ancestor[];
  /** The principal that created the first ancestor; null: unknown, or it has none. */
  readonly rootDelegator: string | null;
  /** Its parent's deadline, ms since 1970, which also ends it; undefined: it has no parent. */
  readonly latestEnd: number | undefined;
  /** The budget above it that it counts for; undefined: there is none. */
  readonly inherited: Inherited | undefined;
  /** Whether its tree is the principal's own: it is the root, or under a root of the principal. */
  readonly isOwnTree: boolean;
  /** Whether what its parent uses counts for the budgets of the root's delegator. */
  readonly isCounted: boolean;
}

/** Where a new delegation belongs; throws for a parent that is unknown or finished, for loops, and beyond the depth. */
export async function lineageOf(
  broker: Reads,
  principal: Principal,
  target: string,
  parentId: string | undefined,
): Promise<Lineage> {
  const ancestors: Ancestor[] = [];
  let latestEnd: number | undefined;
  let rootDelegator: string | null = null;
  let inherited: Inherited | undefined;
  let isCounted = false;
  if (parentId !== undefined) {
    const parent = await read(broker, principal, parentId);
    // The delegator of the root may read it, by `tree_reads`, and no more.
    if (!(await canSee(broker, principal, parent))) throw strangeParent(parentId);
    if (parent.finished) throw finishedParent(parentId, parent.get("state"));
    ancestors.push(...parent.get("ancestors"), [parent.id, parent.get("target")]);
    latestEnd = parent.get("deadline_at");
    rootDelegator = await rootDelegatorUnder(broker, parent);
    inherited = inheritedFrom(parentId, parent.get("budget"));
    isCounted = parent.get("counted") === 1;
  }
  if (ancestors.length >= LIMITS.tree_depth.value) {
    throw new ErrandError(
      "delegation_loop",
      `The delegation is nested too deep; the limit is ${LIMITS.tree_depth.value} levels.`,
      {
        details: { depth: ancestors.length },
        recovery: "Do the work in this agent, or delegate it without parent_id.",
      },
    );
  }
  const isAbove = target === principal.name || ancestors.some(([, above]) => above === target);
  if (principal.kind === "agent" && isAbove) {
    throw new ErrandError(
      "delegation_loop",
      `Agent '${target}' cannot get this delegation: it is the delegator or works on an ancestor.`,
      {
        details: { target, ancestors: ancestors.map(([id]) => id) },
      },
    );
  }
  const isOwnTree = rootDelegator === null || rootDelegator === principal.text;
  return { ancestors, latestEnd, rootDelegator, inherited, isOwnTree, isCounted };
}

/** The operator if it was an agent that is deleted: a new one of its name must not see what is delegated from now on. */
async function rootDelegatorUnder({ agents }: Reads, parent: StoredDelegation): Promise<string> {
  const delegator = parent.get("root_delegator") ?? parent.get("delegator");
  const { kind, name } = toPrincipal(delegator);
  const isGone = kind === "agent" && parent.get("created_at") < (await agents.since(name));
  return isGone ? "operator" : delegator;
}

/** To somebody who may read the parent. */
const strangeParent = (delegation_id: string): ErrandError =>
  new ErrandError(
    "forbidden",
    "Only the delegator of the parent, its agent and the operator may delegate under it.",
    {
      delegation_id,
    },
  );

const finishedParent = (id: string, state: State): ErrandError =>
  new ErrandError("already_finished", `The parent ${id} is ${state}, and takes no more children.`, {
    delegation_id: id,
    delegation_valid: false,
    recovery: "Delegate without a parent, or under one that is not finished.",
  });

/** The newest children that the principal may see, newest first. One cheap command if there are none. */
export async function childrenOf(
  broker: Lists & Pick<Broker, "redis">,
  principal: Principal,
  parent_id: string,
  limit: number,
): Promise<StoredDelegation[]> {
  const key = broker.shards.ofId(parent_id)?.children(parent_id);
  if (key === undefined || (await broker.redis.scard(key)) === 0) return [];
  return (await list(broker, principal, { parent_id, limit })).records;
}

/** Adds a child to its parent: from now on the end of the parent reaches the child, even before the child exists. */
export async function addChild(
  broker: Pick<Broker, "writer">,
  parentId: string,
  childId: string,
): Promise<void> {
  const { outcome } = await broker.writer.move({
    move: "adopt",
    id: parentId,
    params: { child_id: childId },
  });
  if (outcome.kind === "state" && isTerminal(outcome.state)) throw finishedParent(parentId, outcome.state);
  if (outcome.kind !== "ok") throw refusal(outcome, parentId);
}

/** Undoes {@link addChild} for a child that was refused. If this fails, the entry stays and costs a cancel one look-up. */
export async function removeChild(
  broker: Warns & Records,
  parentId: string | undefined,
  childId: string,
): Promise<void> {
  const keys = parentId === undefined ? null : broker.shards.ofId(parentId);
  if (!keys || parentId === undefined) return;
  await broker.redis
    .srem(keys.children(parentId), childId)
    .catch((error: unknown) => warn(broker, error, "refused child not removed from its parent"));
}
