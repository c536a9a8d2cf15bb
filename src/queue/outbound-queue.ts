/**
 * The queue of outgoing calls, made of tickets: a call waits until it is due, is popped and made, and is then consumed
 * or put back for another try. Limit: if a gateway dies during a call, another one takes it over after a minute.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { ParkedPolls } from "./parked-polls.ts";
import type { Popped, TicketData, Tickets } from "./tickets.ts";

/** Not a valid name of an agent, so no agent has this queue. */
export const OUTBOUND_QUEUE = "~hooks";

const AT_ONCE = 20;
const PAUSE_MS = 1_000;
const RECOVER_EVERY_MS = 30_000;
/** A call that was popped longer ago is taken over; no call takes as long. */
const LOST_MS = 60_000;
const ORDER = { priority: 5, returned: false, delay_ms: 0 };

export interface OutboundQueueOptions {
  readonly tickets: Tickets;
  /** Makes one call. Resolves to null when the call is finished, or to the delay before the next try, ms. */
  readonly deliver: (ticket: TicketData, stopping: AbortSignal) => Promise<number | null>;
  /** Notifies the other gateways that a call is queued. */
  readonly wake: () => void;
  readonly onError: (error: unknown) => void;
}

export class OutboundQueue {
  readonly #options: OutboundQueueOptions;
  readonly #polls: ParkedPolls;
  readonly #running = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  #timer: NodeJS.Timeout | null = null;

  constructor(options: OutboundQueueOptions) {
    this.#options = options;
    this.#polls = new ParkedPolls({ onError: options.onError });
  }

  start(): void {
    void this.#work();
    this.#timer = setInterval(() => {
      this.recover(LOST_MS).catch(this.#options.onError);
    }, RECOVER_EVERY_MS).unref();
  }

  /** Waits for running calls, up to `graceMs`; another gateway takes over the rest. */
  async stop(graceMs: number): Promise<void> {
    if (this.#timer) clearInterval(this.#timer);
    this.#stopping.abort();
    const late = new AbortController();
    await Promise.race([
      Promise.allSettled(this.#running),
      sleep(graceMs, undefined, { signal: late.signal }).catch(() => {}),
    ]);
    late.abort();
  }

  /** Queues a call; adding the same ticket twice makes one call. */
  async add(ticket: TicketData): Promise<void> {
    await this.#options.tickets.add(OUTBOUND_QUEUE, ticket, ORDER);
    this.wake();
    this.#options.wake();
  }

  /** Removes a call from the queue; a running call continues. */
  async remove(ticket: TicketData): Promise<void> {
    const { tickets } = this.#options;
    const found = await tickets.find(OUTBOUND_QUEUE, ticket);
    if (found === "queued" || found === "delayed") await tickets.discard(OUTBOUND_QUEUE, ticket);
  }

  /** Call it when this or another gateway may have queued a call. */
  wake(): void {
    this.#polls.wake(OUTBOUND_QUEUE);
  }

  /** Queues again the calls that were popped longer ago than this, by gateways that died. */
  async recover(olderThanMs: number): Promise<void> {
    const { tickets } = this.#options;
    for (const ticket of await tickets.popped(OUTBOUND_QUEUE, olderThanMs)) {
      await tickets.requeue(OUTBOUND_QUEUE, ticket);
      this.wake();
    }
  }

  async #work(): Promise<void> {
    const { signal } = this.#stopping;
    const fetch = () => this.#options.tickets.pop(OUTBOUND_QUEUE);
    while (!signal.aborted) {
      try {
        const popped = await this.#polls.park(OUTBOUND_QUEUE, { signal, fetch });
        if (!popped) return;
        if (signal.aborted) return await this.#options.tickets.putBack(popped);
        const call = this.#call(popped).finally(() => this.#running.delete(call));
        this.#running.add(call);
        if (this.#running.size >= AT_ONCE) await Promise.race(this.#running);
      } catch (error) {
        this.#options.onError(error);
        await sleep(PAUSE_MS, undefined, { signal }).catch(() => {});
      }
    }
  }

  async #call(popped: Popped): Promise<void> {
    const { tickets, deliver, onError } = this.#options;
    try {
      const again = await deliver(popped, this.#stopping.signal);
      if (again === null) return await tickets.consume(popped);
      await tickets.putBack(popped, again);
      // The fetch that this starts sets a timer for when the call is due.
      this.wake();
    } catch (error) {
      onError(error);
    }
  }
}
