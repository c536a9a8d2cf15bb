/** Heartbeats: the holder extends its lease, reports progress, and waits for follow-ups. */
import * as z from "zod";
import type { Entry } from "../../events/entry.ts";
import type { Outcome } from "../../lifecycle/outcome.ts";
import { MOVES } from "../../lifecycle/states.ts";
import { budgetOf } from "../../lifecycle/stored-budget.ts";
import { type Message, messageSchema } from "../../schema/a2a.ts";
import type { BudgetShown } from "../../schema/budget.ts";
import type { State } from "../../schema/delegation.ts";
import { type HoldingState, type heartbeatRequestSchema, heartbeatSchema } from "../../schema/lease.ts";
import { toInstant } from "../../schema/values.ts";
import type { StopSignal } from "../../util/stop-signal.ts";
import type { Principal } from "../access/access.ts";
import { type Moves, notifyReceivers } from "../after-move.ts";
import type { Broker } from "../broker.ts";
import { refusal } from "../errors.ts";
import { waitUntil } from "../events/wait.ts";
import { asHolder } from "./as-holder.ts";
import { holderOf } from "./holder.ts";

type Heartbeat = z.output<typeof heartbeatRequestSchema>;

type Beat = Extract<Outcome, { kind: "ok" }> & { readonly unseen: readonly string[] };

export interface HeartbeatResult {
  readonly expires_at: string;
  readonly state: HoldingState;
  /** Follow-ups that the holder has not seen, oldest first. */
  readonly messages: readonly Message[];
  readonly budget?: BudgetShown | undefined;
  readonly progress_dropped?: true | undefined;
}

const messagesSchema = z.array(messageSchema);
const stateSchema = heartbeatSchema.shape.state;
const isAfter = (entry: Entry | null, version: number): entry is Entry =>
  entry !== null && entry.seq > version;
const isFollowUp = (entry: Entry): boolean => entry.status === "message";
/** The longest hold beyond the budget: the caller may have missed the notice, and has little time left. */
const OVER_HOLD_MS = 1_000;
const isExceeded = (budget: string | undefined): boolean =>
  budget !== undefined && budgetOf(budget, null).exceeded === true;
const isOverBudget = (entry: Entry): boolean => entry.status === MOVES.overrun.status;

/**
 * Extends the lease; returns the follow-ups that the holder has not seen. With `wait_seconds` it waits for one, for the
 * answer to a held question, or for the loss of the lease, so a cancel arrives at once. A newer one that waits for the same lease ends it.
 */
export async function heartbeat(
  broker: Moves & Pick<Broker, "feed" | "heldHeartbeats" | "presence">,
  principal: Principal,
  leaseId: string,
  request: Heartbeat,
  signal: StopSignal,
): Promise<HeartbeatResult> {
  const { id, params } = holderOf(principal, leaseId);
  const { seen } = request;
  const beat = async (
    progress?: Heartbeat["progress"],
    checkpoint?: string,
    usage?: Heartbeat["usage"],
  ): Promise<Beat> => {
    const json = progress === undefined ? undefined : JSON.stringify(progress);
    const { outcome, unseen } = await asHolder(broker, id, params, () =>
      broker.writer.move({
        move: json === undefined ? "heartbeat" : "progress",
        id,
        params: { ...params, seen },
        event: { progress: json },
        fields: { progress: json, checkpoint },
        usage,
      }),
    );
    if (outcome.kind !== "ok") throw refusal(outcome, id, leaseId);
    broker.presence.seen(outcome.target);
    notifyReceivers(broker, id, outcome);
    return { ...outcome, unseen };
  };
  const answer = (outcome: Beat) => ({
    expires_at: toInstant(outcome.lease_expires_at ?? outcome.now),
    state: stateSchema.parse(outcome.state),
    messages: messagesSchema.parse(JSON.parse(`[${outcome.unseen.join(",")}]`)),
    ...(outcome.budget !== undefined && { budget: budgetOf(outcome.budget, outcome.stop_at) }),
    ...(outcome.progress_dropped && { progress_dropped: outcome.progress_dropped }),
  });
  const checkpoint = checkpointText(request.checkpoint);
  if (request.wait_seconds === 0) return answer(await beat(request.progress, checkpoint, request.usage));

  const limits = { wait_seconds: request.wait_seconds, signal };
  /** The state of the first beat, and the newest event that arrived before it was answered. */
  let state: State | null = null;
  let early: Entry | null = null;
  const isNews = (entry: Entry): boolean =>
    entry.state !== state ||
    entry.status === MOVES.park_question.status ||
    isFollowUp(entry) ||
    isOverBudget(entry);
  // Subscribed before the first beat, so that a cancel right after it is not missed.
  const waiting = waitUntil(broker.feed, id, limits, (entry) => {
    if (state === null) early = entry;
    return state !== null && isNews(entry);
  });
  try {
    const first = await beat(request.progress, checkpoint, request.usage);
    state = first.state;
    const isKnown = request.in_state === undefined || request.in_state === first.state;
    if (first.unseen.length > 0 || !isKnown) return answer(first);
    if (isAfter(early, first.version) && isNews(early)) return answer(await beat());
    let isReplaced = false;
    const end = broker.heldHeartbeats.begin(leaseId, () => {
      isReplaced = true;
      waiting.stop();
    });
    const halfLease = ((first.lease_expires_at ?? first.now) - first.now) / 2;
    const timer = setTimeout(
      waiting.stop,
      isExceeded(first.budget) ? Math.min(halfLease, OVER_HOLD_MS) : halfLease,
    );
    await waiting.done;
    clearTimeout(timer);
    end();
    // A caller that left or was revoked must not extend the lease; for one that was replaced, the newer one did.
    const { progress_dropped } = first;
    return answer(signal.aborted || isReplaced ? first : { ...(await beat()), progress_dropped });
  } finally {
    waiting.stop();
  }
}

/** The checkpoint as the record stores it; an empty text means none. */
export function checkpointText(checkpoint: Heartbeat["checkpoint"]): string | undefined {
  if (checkpoint === undefined) return undefined;
  return checkpoint === null ? "" : JSON.stringify(checkpoint);
}
