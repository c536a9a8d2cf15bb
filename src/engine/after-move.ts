/**
 * What follows a move: tickets in and out of the queue, and the wakes. Limit: all of it may be lost when the
 * process dies here; the record has already moved, and the sweep makes it good.
 */
import { MOVES, type Move } from "../lifecycle/states.ts";
import type { Moved } from "../lifecycle/writer.ts";
import type { TicketData, TicketOrder } from "../queue/tickets.ts";
import type { Broker } from "./broker.ts";

/**
 * Parked polls of this agent look again, here and at the other gateways: one for one ticket, or (`drain`) as long as
 * there is something.
 */
export function wake(broker: Broker, agent: string, drain = true): void {
  broker.wakers.wake(agent, drain);
  broker.bus
    .publish(broker.shards.ofAgent(agent).wake, `${broker.gateway} ${agent}${drain ? " drain" : ""}`)
    .catch((error: unknown) => warn(broker, error, "wake not sent"));
}

const PATIENCE_MS = 700;

/** Accepted is accepted: what follows is not waited for when Redis does not answer. */
export async function waitBriefly(work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, PATIENCE_MS);
  });
  await Promise.race([work, patience]);
  clearTimeout(timer);
}

/** What goes on behind an answer; a stop waits for it. */
export function inBackground(broker: Broker, work: Promise<void>): Promise<void> {
  const tracked = work.finally(() => broker.background.delete(tracked));
  broker.background.add(tracked);
  return tracked;
}

/** Behind a move that nothing else follows from: whoever wants to be told of its event is. */
export function notifyReceivers(broker: Broker, id: string, { pending_events, event_id }: Moved): void {
  if (pending_events && event_id !== undefined) void broker.deliverPending(id, { pending_events });
}

/** Ends without a word of the agent. */
const UNSAID: readonly string[] = ["cancel", "expire", "exhaust", "give_up"];

/** `taken`: a poll has looked for its ticket in the same step. */
export async function afterMove(broker: Broker, id: string, moved: Moved, taken = false): Promise<void> {
  const move: Move = MOVES[moved.move];
  const { target } = moved;
  if (moved.cascade !== undefined || moved.pending_events)
    await waitBriefly(broker.deliverPending(id, moved));
  if (UNSAID.includes(moved.move)) await waitBriefly(broker.pushAgents.ended(target, id));
  // A swept record's ticket may have been popped by a process that died; it is taken out.
  const stale = move.by.includes("sweep") || move.queue === "drop_ticket";
  const old = stale ? (moved.old_ticket ?? 0) : 0;
  if (old > 0) await waitBriefly(discard(broker, target, { delegation_id: id, ticket: old }));
  if (move.queue === "ticket") {
    if (taken) return;
    if (moved.ticketed) broker.told.by(target, moved.event_id);
    else await waitBriefly(offer(broker, target, ticketOf(id, moved)));
  } else if (move.lease === "drop" && (await isCapped(broker, target))) {
    wake(broker, target);
  }
}

const ticketOf = (id: string, moved: Moved) => ({
  data: { delegation_id: id, ticket: moved.ticket },
  order: {
    priority: moved.priority ?? 5,
    returned: moved.returned ?? false,
    delay_ms: (moved.ready_at ?? moved.now) - moved.now,
  },
});

async function discard(broker: Broker, agent: string, ticket: TicketData): Promise<void> {
  await broker.tickets
    .discard(agent, ticket)
    .catch((error: unknown) => warn(broker, error, "ticket not taken out; it is worth nothing"));
}

/** Puts a ticket into the agent's queue; what fails is tried again once Redis answers. */
export async function offer(
  broker: Broker,
  agent: string,
  { data, order }: { data: TicketData; order: TicketOrder },
): Promise<void> {
  try {
    await broker.tickets.add(agent, data, order);
    // A delayed one may fall due together with others, and is looked for then.
    wake(broker, agent, false);
  } catch (error) {
    broker.unheard.offer({ agent, data, order });
    warn(broker, error, "ticket not made yet");
  }
}

/** With `max_working`, a lease that ends makes room for another. */
async function isCapped(broker: Broker, agent: string): Promise<boolean> {
  const found = await broker.agents.find(agent).catch((error: unknown) => {
    warn(broker, error, "not known whether a lease that ended makes room; the next look finds out");
    return null;
  });
  return (found?.spec.limits.max_working ?? null) !== null;
}

/** Logs at `debug` while Redis is away: that is logged once, by `Connections`. */
export function warn(broker: Broker, error: unknown, what: string): void {
  const level = broker.connections.failed(error) ? "debug" : "warn";
  broker.log[level]({ err: error instanceof Error ? error.message : "unknown" }, what);
}
