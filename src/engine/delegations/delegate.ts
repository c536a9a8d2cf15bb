/**
 * Accepts a delegation. It is accepted once the script has written it; the sweep replaces a lost ticket.
 * engine/leases/handoff.ts explains how accepted work reaches a worker's poll.
 */
import { randomUUID } from "node:crypto";
import { newBudget } from "../../lifecycle/stored-budget.ts";
import { readRecord, type StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { isOutOfMemory } from "../../redis/errors.ts";
import { randomId } from "../../redis/shards.ts";
import { textOf } from "../../schema/a2a.ts";
import { isKnownCurrency, UNKNOWN_CURRENCY } from "../../schema/currency.ts";
import { DEFAULT_PRIORITY, type DelegateRequest } from "../../schema/delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import { contextIdSchema, toInstant } from "../../schema/values.ts";
import { matchesPattern, type Principal, requireDelegator } from "../access/access.ts";
import { afterAnnouncedMove, afterMove, type Moves, waitBriefly } from "../after-move.ts";
import type { Broker, Reads } from "../broker.ts";
import { refusal } from "../errors.ts";
import { type NamesFiles, nameFilesOf } from "../files/name-files.ts";
import { unnameFiles } from "../files/upkeep.ts";
import { type MakePushConfig, pushParams } from "../outbound/push-notifications/configs.ts";
import { findByKey, reserve } from "./idempotency.ts";
import { requireBudgetLeft, requireDelegatorsBudgetLeft } from "./period-budgets.ts";
import { preview } from "./preview.ts";
import { addChild, type Lineage, lineageOf, removeChild } from "./tree.ts";

/** To create a delegation. */
export type Submits = Moves & NamesFiles & Pick<Broker, "clock" | "egress" | "memory" | "metrics">;

const DEFAULT_TTL_MS = 604_800_000;
const MAX_PRIORITY = 9;

const priorityOf = ({ priority }: Pick<DelegateRequest, "priority">, { maxPriority }: Principal): number =>
  priority ?? Math.min(DEFAULT_PRIORITY, maxPriority ?? MAX_PRIORITY);

function requirePriority({ priority }: Pick<DelegateRequest, "priority">, { maxPriority }: Principal): void {
  if (priority === undefined || priority <= (maxPriority ?? MAX_PRIORITY)) return;
  throw new ErrandError(
    "priority_too_high",
    `The token may delegate with a priority of at most ${maxPriority}, not ${priority}.`,
    { details: { priority, max_priority: maxPriority } },
  );
}

/** The delegator's A2A message with defaults, and the delegation's id last in its metadata (see lease-payload.ts). */
function toMessage(request: DelegateRequest, id: string) {
  const { metadata, ...sent } = request.message ?? { parts: [{ text: request.task ?? "" }] };
  const { delegation_id: _ours, ...own } = metadata ?? {};
  const { messageId = randomUUID(), role = "ROLE_USER" } = sent;
  // Object.assign, because a literal that begins with a spread is slow; see lifecycle/command.ts.
  return Object.assign({}, sent, { messageId, role, metadata: Object.assign(own, { delegation_id: id }) });
}

function contextOf({ context_id, message }: DelegateRequest): string {
  if (context_id !== undefined) return context_id;
  const given = message?.contextId;
  return given !== undefined && contextIdSchema.safeParse(given).success ? given : `ctx_${randomId(26)}`;
}

const milliseconds = (seconds: number | undefined): number | undefined =>
  seconds === undefined ? undefined : Math.round(seconds * 1000);
const instant = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : Date.parse(text);

type Start = Pick<DelegateRequest, "not_before" | "delay_seconds">;

/** May be in the past. */
const earliestStart = ({ not_before, delay_seconds }: Start, now: number): number =>
  instant(not_before) ?? now + (milliseconds(delay_seconds) ?? 0);

/** Time until the deadline. */
function lifetimeMs(request: DelegateRequest, now: number): number {
  const start = Math.max(now, earliestStart(request, now));
  const end = instant(request.deadline) ?? start + (milliseconds(request.ttl_seconds) ?? DEFAULT_TTL_MS);
  return Math.max(0, end - now);
}

function requireFuture(
  request: Pick<DelegateRequest, "deadline" | "not_before" | "delay_seconds">,
  now: number,
): void {
  const deadline = instant(request.deadline);
  const start = earliestStart(request, now);
  if (deadline === undefined || deadline > Math.max(start, now)) return;
  throw new ErrandError(
    "invalid_request",
    "The deadline has passed, or is before the delegation may start.",
    {
      details: { issues: [{ path: "deadline", reason: "must be in the future, after the earliest start" }] },
    },
  );
}

/** A child that could only start after the end of its parent would never run. */
function requireStartBeforeParentEnds(request: Start, now: number, { latestEnd }: Lineage): void {
  if (latestEnd === undefined || earliestStart(request, now) < latestEnd) return;
  const path = (["not_before", "delay_seconds"] as const).find((name) => request[name] !== undefined);
  throw new ErrandError("invalid_request", "The delegation would start after the deadline of its parent.", {
    details: {
      issues: [{ path: path ?? "parent_id", reason: `its parent's deadline is ${toInstant(latestEnd)}` }],
    },
  });
}

/** Costs of a tree are in one currency, because they are added up. */
function requireCurrency({ budget }: Pick<DelegateRequest, "budget">, { inherited }: Lineage): void {
  const [own, above] = [budget?.currency, inherited?.currency];
  const isOther = own !== undefined && above !== undefined && own !== above;
  if (isKnownCurrency(own) && !isOther) return;
  const reason = isOther ? `the budget of ${inherited?.of} is in ${above}` : UNKNOWN_CURRENCY;
  throw new ErrandError("invalid_request", `The currency of the budget cannot be ${own}.`, {
    details: { issues: [{ path: "budget.currency", reason }] },
  });
}

export interface DelegateOptions {
  readonly traceparent?: string | undefined;
  readonly idempotencyKey?: string | undefined;
  /** The request body, which the key identifies. */
  readonly body?: unknown;
  /** The key finds only a live delegation; after its end, it is delegated again. */
  readonly renews?: boolean | undefined;
  /** The name of the idempotency key, stored in the record. */
  readonly keyName?: string | undefined;
  /** The failed delegation that it replaces. */
  readonly redriveOf?: string | undefined;
  /** What it uses counts for the budgets of the root's delegator, whatever token it is delegated with. */
  readonly isCounted?: boolean | undefined;
  /** When the target was created, ms: an agent that has its name since is refused. */
  readonly agentCreatedAt?: number | undefined;
  /** A push config that receives every event. */
  readonly push?: MakePushConfig | undefined;
}

export interface Delegated {
  readonly record: StoredDelegation;
  /** An earlier request with this key created it. */
  readonly replayed: boolean;
}

export async function delegate(
  broker: Submits & Pick<Broker, "retentionMs">,
  principal: Principal,
  request: DelegateRequest,
  options: DelegateOptions = {},
): Promise<Delegated> {
  requireDelegator(principal);
  if (options.idempotencyKey === undefined) {
    const id = broker.shards.newDelegationId(request.target);
    try {
      const record = await submit(broker, principal, request, id, options);
      if (!record) throw refusal({ kind: "missing", now: 0 }, id);
      return { record, replayed: false };
    } catch (error) {
      if (isRefusal(error)) await undo(broker, request, id);
      throw error;
    }
  }
  for (let voided: string | null = null; ; ) {
    // Checked before the key is set, so that a refused submit leaves no key.
    const checked = await check(broker, principal, request).catch(toRefusal);
    const refused = checked instanceof ErrandError ? checked : null;
    const reservation = await reserve({
      redis: broker.redis,
      longestMs: lifetimeMs(request, Date.now() + broker.clock.offset_ms) + broker.retentionMs,
      principal: principal.text,
      key: options.idempotencyKey,
      // With the default, as in version 0.1.0, whose keys must find their delegations.
      body: options.body ?? { ...request, priority: request.priority ?? DEFAULT_PRIORITY },
      newId: broker.shards.newDelegationId(request.target),
      ...lookups(broker, principal),
      recordKey: (id) => broker.shards.ofId(id)?.delegation(id) ?? "",
      refused,
      voided,
      renews: options.renews,
    });
    const { id, earlier } = reservation;
    // Returned even if the check failed: accepted work stays accepted.
    if (earlier) {
      await broker.writer.confirm(id);
      await waitBriefly(offerAgain(broker, earlier));
      return { record: earlier, replayed: true };
    }
    if (checked instanceof ErrandError) throw checked;
    try {
      const named = { ...options, keyName: reservation.name };
      const made = await create(broker, principal, request, id, checked, named);
      const record = made ?? (await readRecord(broker.redis, broker.shards, id));
      if (record) return { record, replayed: made === null };
      // Neither created nor found: the id was voided meanwhile, so start over with the key.
      voided = id;
    } catch (error) {
      if (isRefusal(error) && (await reservation.refuse())) await undo(broker, request, id);
      throw error;
    }
  }
}

const lookups = (broker: Reads, principal: Principal) => ({
  find: (id: string) => readRecord(broker.redis, broker.shards, id),
  deletedAt: async () => (principal.kind === "agent" ? broker.agents.deletedAt(principal.name) : null),
});

/** The delegation that this principal's idempotency key has; null if there is none. */
export const findDelegated = (
  broker: Reads,
  principal: Principal,
  key: string,
): Promise<StoredDelegation | null> =>
  findByKey({ redis: broker.redis, principal: principal.text, key, ...lookups(broker, principal) });

/** What was written before the record that will never be. */
async function undo(broker: Submits, { parent_id, message }: DelegateRequest, id: string): Promise<void> {
  await removeChild(broker, parent_id, id);
  const mayNameFiles = message?.parts.some(({ url }) => url !== undefined) === true;
  if (mayNameFiles) await unnameFiles(broker, id);
}

/** Whether the error means that no delegation was created, and that none will be. */
const isRefusal = (error: unknown): boolean => error instanceof ErrandError || isOutOfMemory(error);

function toRefusal(error: unknown): ErrandError {
  if (error instanceof ErrandError) return error;
  throw error;
}

/** Throws unless the target exists and accepts such work from this principal. */
async function requireAccepted(
  broker: Pick<Broker, "agents">,
  principal: Principal,
  target: string,
  isApproved: boolean,
): Promise<void> {
  const { spec } = await broker.agents.get(target);
  if (!spec.accepts_from.some((pattern) => matchesPattern(principal, pattern))) {
    throw new ErrandError("not_accepted", `Agent '${target}' does not accept work from ${principal.text}.`);
  }
  if (isApproved && spec.approvals === "person") {
    throw new ErrandError(
      "approval_required",
      `Agent '${target}' refuses approval in advance (its setting approvals is person).`,
    );
  }
}

/** For a retry: the first response may have been lost together with the ticket. A ticket added twice is one ticket. */
async function offerAgain(broker: Pick<Broker, "handoff">, record: StoredDelegation): Promise<void> {
  if (record.get("state") !== "submitted" || record.get("fence") > 0 || record.get("not_before_at") !== null)
    return;
  if (record.get("behind") !== null) return;
  await broker.handoff.offer({
    agent: record.get("target"),
    data: { delegation_id: record.id, ticket: record.get("ticket") },
    order: { priority: record.get("priority"), returned: false, delay_ms: 0 },
  });
}

/** Null when a concurrent request with the same reservation created the delegation, or the id was voided. */
export async function submit(
  broker: Submits,
  principal: Principal,
  request: DelegateRequest,
  id: string,
  options: DelegateOptions,
): Promise<StoredDelegation | null> {
  return create(broker, principal, request, id, await check(broker, principal, request), options);
}

/** Throws the refusals that need no script; returns the ancestors of the new delegation. */
export async function check(
  broker: Reads & Pick<Broker, "clock" | "egress" | "memory">,
  principal: Principal,
  { target, parent_id, callback, ...request }: DelegateRequest,
): Promise<Lineage> {
  requirePriority(request, principal);
  await requireAccepted(broker, principal, target, request.auto_approve !== undefined);
  await requireBudgetLeft(broker, target);
  broker.memory.requireRoom();
  const now = Date.now() + broker.clock.offset_ms;
  requireFuture(request, now);
  if (callback) broker.egress.requireCallable(callback.url, "callback.url");
  const lineage = await lineageOf(broker, principal, target, parent_id);
  // Work under another's root counts for the other alone.
  if (lineage.isOwnTree) await requireDelegatorsBudgetLeft(broker, principal);
  requireStartBeforeParentEnds(request, now, lineage);
  requireCurrency(request, lineage);
  return lineage;
}

/** The second half of {@link submit}, after {@link check}. */
async function create(
  broker: Moves & NamesFiles & Pick<Broker, "memory" | "metrics">,
  principal: Principal,
  request: DelegateRequest,
  id: string,
  { ancestors, latestEnd, rootDelegator, inherited, isOwnTree, isCounted }: Lineage,
  options: DelegateOptions,
): Promise<StoredDelegation | null> {
  const { parent_id, callback } = request;
  const priority = priorityOf(request, principal);
  const startedAt = performance.now();
  const counts = isCounted || options.isCounted || (isOwnTree && principal.budgets !== undefined);
  if (parent_id !== undefined) await addChild(broker, parent_id, id);
  const message = await nameFilesOf(broker, principal, id, toMessage(request, id), { isNew: true });
  const json = JSON.stringify(message);
  const result_schema =
    request.result_schema === undefined ? undefined : JSON.stringify(request.result_schema);
  const task_preview = JSON.stringify(preview(textOf(message)));
  const { outcome, record, taken } = await broker.handoff.submit(request.target, {
    move: "submit",
    id,
    params: {
      target: request.target,
      delegator: principal.text,
      context_id: contextOf(request),
      parent_id,
      root_id: ancestors[0]?.[0],
      root_delegator: rootDelegator === principal.text ? undefined : (rootDelegator ?? undefined),
      callbacks: callback && 1,
      has_result_schema: result_schema && 1,
      priority,
      max_attempts: request.max_attempts,
      delay_ms: milliseconds(request.delay_seconds),
      not_before_at: instant(request.not_before),
      ttl_ms: milliseconds(request.ttl_seconds) ?? DEFAULT_TTL_MS,
      deadline_at: instant(request.deadline),
      latest_at: latestEnd,
      // Work above it may wait for its end, so it must not wait behind that work.
      line: ancestors.some(([, above]) => above === request.target) ? 0 : undefined,
      keeps_children: request.children_on_failure === "keep" ? 1 : undefined,
      budget: newBudget(request.budget, request.on_budget === "ask", inherited),
      counted: counts ? 1 : undefined,
      start_within_ms: milliseconds(request.start_within_seconds),
      redrive_of: options.redriveOf,
      agent_created_at: options.agentCreatedAt,
      traceparent: options.traceparent,
      idempotency: options.keyName,
      max_kept: broker.memory.maxKeptBytes(principal),
      ...(options.push && pushParams(options.push(id))),
    },
    event: { task_preview, priority: String(priority) },
    fields: {
      message: json,
      task_preview,
      metadata: Object.keys(request.metadata).length === 0 ? undefined : JSON.stringify(request.metadata),
      auto_approve: request.auto_approve && JSON.stringify(request.auto_approve),
      result_schema,
      ancestors: ancestors.length === 0 ? undefined : JSON.stringify(ancestors),
      callback: callback && JSON.stringify(callback),
    },
    bytes: Buffer.byteLength(json) + Buffer.byteLength(result_schema ?? ""),
    read: true,
  });
  if (outcome.kind === "exists" || outcome.kind === "voided") return null;
  if (outcome.kind !== "ok" || !record) throw refusal(outcome, id);
  broker.metrics.accept.observe((performance.now() - startedAt) / 1000);
  if (taken !== undefined || outcome.ticketed) await afterAnnouncedMove(broker, id, outcome);
  else await afterMove(broker, id, outcome);
  return record;
}
