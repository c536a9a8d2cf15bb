/**
 * Runs after a move: announces or removes tickets, starts pending deliveries, and wakes polls. leases/handoff.ts says
 * how a ticket reaches a poll. Limit: a crash here loses all of it, but not the move; the sweep repairs the rest.
 */
import type { Moved } from "../lifecycle/outcome.ts";
import { MOVES, type Move } from "../lifecycle/states.ts";
import type { TicketData } from "../queue/tickets.ts";
import { DEFAULT_PRIORITY } from "../schema/delegation.ts";
import type { Broker } from "./broker.ts";
import type { Offer } from "./leases/in-doubt.ts";

/** To log what failed without failing the move. */
export type Warns = Pick<Broker, "connections" | "log">;
/** What a move leads to. */
export type AfterMove = Warns & Pick<Broker, "deliverPending" | "handoff" | "pushAgents" | "tickets">;
/** To make a move, and what it leads to. */
export type Moves = AfterMove & Pick<Broker, "writer">;

const MAX_WAIT_MS = 700;

/** Waits for work after a move, but not for long: when Redis does not answer, the response must not wait for it. */
export async function waitBriefly(work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, MAX_WAIT_MS);
  });
  await Promise.race([work, timeout]);
  clearTimeout(timer);
}

/** Work that continues after the response; a stop waits for it. */
export function inBackground(broker: Pick<Broker, "background">, work: Promise<void>): Promise<void> {
  const tracked = work.finally(() => broker.background.delete(tracked));
  broker.background.add(tracked);
  return tracked;
}

/**
 * For a move that changes no tickets: delivers its event to callbacks and push notifications, and what it used to the
 * budgets above.
 */
export function notifyReceivers(
  broker: Pick<Broker, "deliverPending">,
  id: string,
  { pending_events, event_id, spends_to, spent }: Moved,
): void {
  if (pending_events && event_id !== undefined) void broker.deliverPending(id, { pending_events });
  if (spends_to !== undefined) void broker.deliverPending(id, { spends_to, spent });
}

/** Call it after a move that may make a ticket or end a lease or a delegation, unless its ticket was announced with it. */
export async function afterMove(broker: AfterMove, id: string, moved: Moved): Promise<void> {
  await afterAnnouncedMove(broker, id, moved);
  const { queue, lease }: Move = MOVES[moved.move];
  if (queue === "ticket") await announceTicket(broker, id, moved);
  // The event of a lease's end wakes polls that wait for it.
  else if (lease === "drop" && moved.event_id === undefined) broker.handoff.wakeEverywhere(moved.target);
}

/** The same when a poll took the move's ticket already, or polls were woken for it. */
export async function afterAnnouncedMove(broker: AfterMove, id: string, moved: Moved): Promise<void> {
  const { removes_old_ticket, cancels_remote_task }: Move = MOVES[moved.move];
  const { target, old_ticket = 0 } = moved;
  if (hasPending(moved)) await waitBriefly(broker.deliverPending(id, moved));
  if (moved.admitted) await afterMove(broker, moved.admitted.id, moved.admitted);
  if (cancels_remote_task) await waitBriefly(broker.pushAgents.queueTaskCancel(target, id));
  if (removes_old_ticket && old_ticket > 0)
    await waitBriefly(discard(broker, target, { delegation_id: id, ticket: old_ticket }));
}

const hasPending = ({ cascade, expecting, reports_to, spends_to, pending_events }: Moved): boolean =>
  cascade !== undefined ||
  expecting !== undefined ||
  reports_to !== undefined ||
  spends_to !== undefined ||
  pending_events !== undefined;

async function announceTicket({ handoff }: Pick<Broker, "handoff">, id: string, moved: Moved): Promise<void> {
  const { target, kept_for } = moved;
  // It waits in the line of its conversation, without a ticket.
  if (moved.behind !== undefined) return;
  if (moved.ticketed) handoff.wakeUnlessPublished(target, moved.event_id, kept_for);
  else await waitBriefly(handoff.offer(offerOf(id, moved)));
}

const offerOf = (id: string, moved: Moved): Offer => ({
  agent: moved.target,
  data: { delegation_id: id, ticket: moved.ticket },
  order: {
    priority: moved.priority ?? DEFAULT_PRIORITY,
    returned: moved.returned ?? false,
    delay_ms: (moved.ready_at ?? moved.now) - moved.now,
  },
});

async function discard(
  broker: Warns & Pick<Broker, "tickets">,
  agent: string,
  ticket: TicketData,
): Promise<void> {
  await broker.tickets
    .discard(agent, ticket)
    .catch((error: unknown) => warn(broker, error, "stale ticket not removed; it has no effect"));
}

/** Logs at `debug` while Redis is away, because `Connections` logs the outage once. */
export function warn(broker: Warns, error: unknown, what: string): void {
  const level = broker.connections.failed(error) ? "debug" : "warn";
  broker.log[level]({ err: error instanceof Error ? error.message : "unknown" }, what);
}
