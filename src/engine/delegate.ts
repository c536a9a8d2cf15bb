/**
 * Accepting a delegation. Limit: accepted means written by the script; the ticket behind it may be lost and
 * made again.
 */
import { randomUUID } from "node:crypto";
import { readRecord, type StoredDelegation } from "../lifecycle/record.ts";
import type { Command, Result } from "../lifecycle/writer.ts";
import { isOutOfMemory } from "../redis/errors.ts";
import { randomId } from "../redis/shards.ts";
import { textOf } from "../schema/a2a.ts";
import type { DelegateRequest } from "../schema/delegation.ts";
import { ErrandError } from "../schema/errors.ts";
import { contextIdSchema } from "../schema/values.ts";
import { matchesPattern, type Principal, requireDelegator } from "./access.ts";
import type { Broker } from "./context.ts";
import { follow, offer, soon } from "./dispatch.ts";
import { reserve } from "./idempotency.ts";
import { takerOf } from "./lease.ts";
import { type MakePush, pushParams } from "./pushes.ts";
import { refusal } from "./refuse.ts";
import { adopt, ancestorsOf } from "./tree.ts";

const DEFAULT_TTL_MS = 604_800_000;
const PREVIEW_BYTES = 100;

/** The first bytes of a text, cut on a character. */
export function preview(text: string, bytes: number = PREVIEW_BYTES): string {
  // A character has a byte at least.
  const buffer = Buffer.from(text.length > bytes ? text.slice(0, bytes + 1) : text, "utf8");
  if (buffer.length <= bytes) return text;
  let end = bytes;
  while (end > 0 && ((buffer[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return buffer.toString("utf8", 0, end);
}

/** The A2A Message as sent, with what it lacks, and the delegation's id last in its metadata (see envelope.ts). */
function toMessage(request: DelegateRequest, id: string) {
  const { metadata, ...sent } = request.message ?? { parts: [{ text: request.task ?? "" }] };
  const { delegation_id: _ours, ...own } = metadata ?? {};
  return {
    ...sent,
    messageId: sent.messageId ?? randomUUID(),
    role: sent.role ?? "ROLE_USER",
    metadata: { ...own, delegation_id: id },
  };
}

function contextOf(request: DelegateRequest): string {
  const fromMessage = contextIdSchema.safeParse(request.message?.contextId);
  return request.context_id ?? (fromMessage.success ? fromMessage.data : `ctx_${randomId(26)}`);
}

const milliseconds = (seconds: number | undefined): number | undefined =>
  seconds === undefined ? undefined : Math.round(seconds * 1000);
const instant = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : Date.parse(text);

/** From now until its deadline. */
function lifetimeMs(request: DelegateRequest, now: number): number {
  const start = Math.max(
    now,
    instant(request.not_before) ?? now + (milliseconds(request.delay_seconds) ?? 0),
  );
  const end = instant(request.deadline) ?? start + (milliseconds(request.ttl_seconds) ?? DEFAULT_TTL_MS);
  return Math.max(0, end - now);
}

function requireFuture(request: DelegateRequest, now: number): void {
  const deadline = instant(request.deadline);
  const start = instant(request.not_before) ?? now + (milliseconds(request.delay_seconds) ?? 0);
  if (deadline === undefined || deadline > Math.max(start, now)) return;
  throw new ErrandError("invalid_request", "The deadline is past, or before the delegation may start.", {
    details: { issues: [{ path: "deadline", reason: "must be later than now and not_before" }] },
  });
}

export interface DelegateOptions {
  readonly traceparent?: string | undefined;
  readonly idempotencyKey?: string | undefined;
  /** What the key stands for: the body as it came. */
  readonly body?: unknown;
  /** The name of the idempotency key, stored in the record. */
  readonly keyName?: string | undefined;
  /** The failed delegation whose place it takes. */
  readonly redriveOf?: string | undefined;
  /** Told of all that happens to it, from its first event on. */
  readonly push?: MakePush | undefined;
}

export interface Delegated {
  readonly record: StoredDelegation;
  /** An earlier request with this key made it. */
  readonly replayed: boolean;
}

export async function delegate(
  broker: Broker,
  principal: Principal,
  request: DelegateRequest,
  options: DelegateOptions = {},
): Promise<Delegated> {
  requireDelegator(principal);
  const newId = broker.shards.newDelegationId(request.target);
  if (options.idempotencyKey === undefined) {
    const record = await submit(broker, principal, request, newId, options);
    if (!record) throw refusal({ outcome: "missing", now: 0 }, newId);
    return { record, replayed: false };
  }
  for (;;) {
    const reservation = await reserve({
      redis: broker.redis,
      longestMs: lifetimeMs(request, Date.now() + broker.clock.offset_ms) + broker.retentionMs,
      principal: principal.text,
      key: options.idempotencyKey,
      body: options.body ?? request,
      newId,
      find: (id) => readRecord(broker.redis, broker.shards, id),
      recordKey: (id) => broker.shards.ofId(id)?.delegation(id) ?? "",
      deletedAt: async () => (principal.kind === "agent" ? broker.agents.deletedAt(principal.name) : null),
      requireRoom: () => broker.pressure.requireRoom(),
    });
    const { id, earlier } = reservation;
    // Found before anything else is asked: what was accepted once stays so, whatever has changed since.
    if (earlier) {
      await soon(offerAgain(broker, earlier));
      return { record: earlier, replayed: true };
    }
    try {
      const made = await submit(broker, principal, request, id, { ...options, keyName: reservation.name });
      const record = made ?? (await readRecord(broker.redis, broker.shards, id));
      // Neither made nor found: the id was voided meanwhile, so start over with the key.
      if (record) return { record, replayed: made === null };
    } catch (error) {
      if (error instanceof ErrandError) await reservation.refuse();
      throw error;
    }
  }
}

/** The target exists and takes work from this principal. */
async function requireAccepted(broker: Broker, principal: Principal, target: string): Promise<void> {
  const { spec } = await broker.agents.get(target);
  if (spec.accepts_from.some((pattern) => matchesPattern(principal, pattern))) return;
  throw new ErrandError("not_accepted", `Agent '${target}' takes no work from ${principal.text}.`);
}

/**
 * Whoever asks again may do so because the first answer was lost, and the ticket with it. The same ticket twice
 * is one.
 */
async function offerAgain(broker: Broker, record: StoredDelegation): Promise<void> {
  if (record.state !== "submitted" || record.fence > 0 || record.not_before_at !== null) return;
  await offer(broker, record.target, {
    data: { delegation_id: record.id, ticket: record.ticket },
    order: { priority: record.priority, returned: false, delay_ms: 0 },
  });
}

/**
 * Null when nothing is made: a concurrent request with the same reservation made the delegation, or the id was voided.
 */
export async function submit(
  broker: Broker,
  principal: Principal,
  request: DelegateRequest,
  id: string,
  options: DelegateOptions,
): Promise<StoredDelegation | null> {
  const { parent_id, callback } = request;
  const startedAt = performance.now();
  await requireAccepted(broker, principal, request.target);
  broker.pressure.requireRoom();
  requireFuture(request, Date.now() + broker.clock.offset_ms);
  if (callback) broker.egress.requireCallable(callback.url, "callback.url");
  const ancestors = await ancestorsOf(broker, principal, request.target, parent_id);
  if (parent_id !== undefined) await adopt(broker, parent_id, id);
  const message = toMessage(request, id);
  const json = JSON.stringify(message);
  const task_preview = JSON.stringify(preview(textOf(message)));
  const { outcome, record, taken } = await handOver(broker, request.target, {
    move: "submit",
    id,
    params: {
      target: request.target,
      delegator: principal.text,
      context_id: contextOf(request),
      parent_id,
      callbacks: callback && 1,
      priority: request.priority,
      max_attempts: request.max_attempts,
      delay_ms: milliseconds(request.delay_seconds),
      not_before_at: instant(request.not_before),
      ttl_ms: milliseconds(request.ttl_seconds) ?? DEFAULT_TTL_MS,
      deadline_at: instant(request.deadline),
      start_within_ms: milliseconds(request.start_within_seconds),
      redrive_of: options.redriveOf,
      ...(options.push && pushParams(options.push(id))),
    },
    event: { task_preview, priority: String(request.priority) },
    fields: {
      message: json,
      task_preview,
      metadata: JSON.stringify(request.metadata),
      traceparent: options.traceparent,
      ancestors: ancestors.length === 0 ? undefined : JSON.stringify(ancestors),
      callback: callback && JSON.stringify(callback),
      redrive_of: options.redriveOf,
      idempotency: options.keyName,
    },
    bytes: Buffer.byteLength(json),
    read: true,
  });
  if (outcome.outcome === "exists" || outcome.outcome === "voided") return null;
  if (outcome.outcome !== "ok" || !record) throw refusal(outcome, id);
  broker.metrics.accept.observe((performance.now() - startedAt) / 1000);
  await follow(broker, id, outcome, taken !== undefined);
  return record;
}

/** Makes the move that brings the agent a ticket; a poll that waits for one takes it in the same step. */
function handOver(broker: Broker, target: string, command: Command): Promise<Result> {
  const lent = broker.claimers.lend(target);
  if (!lent) return broker.writer.move(command);
  const taker = takerOf(lent.terms);
  broker.told.bring(command.id);
  const moving = broker.writer.move(command, taker);
  const taking = moving.then(
    ({ taken }) => taken ?? null,
    (error: unknown) => {
      // Refused for want of memory, it did nothing.
      if (!isOutOfMemory(error)) broker.unheard.grant(target, taker.nonce);
      return null;
    },
  );
  lent.done(
    taking.then((taken) => {
      if (taken === null) broker.told.notTaken(target, command.id);
      return taken;
    }),
  );
  return moving;
}
