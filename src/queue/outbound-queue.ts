/**
 * Outgoing calls, queued like tickets: one waits until it is due, is popped, and is consumed or put back for later.
 * Limit: a gateway that dies with a call leaves it popped; another takes it over after a minute.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { ParkedPolls } from "./parked-polls.ts";
import type { Popped, TicketData, Tickets } from "./tickets.ts";

/** No agent can be called that. */
export const OUTBOUND_QUEUE = "~hooks";

const AT_ONCE = 20;
const PAUSE_MS = 1_000;
const LOOK_EVERY_MS = 30_000;
/** Longer than any call takes. */
const LOST_MS = 60_000;
const ORDER = { priority: 5, returned: false, delay_ms: 0 };

export interface OutboundQueueOptions {
  readonly tickets: Tickets;
  /** Makes one call. Resolves with null when it is done with, or with how long to wait before the next try, ms. */
  readonly deliver: (ticket: TicketData, stopping: AbortSignal) => Promise<number | null>;
  /** Tells the gateways that something is queued. */
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
    }, LOOK_EVERY_MS).unref();
  }

  /** Lets calls under way end, for a while; what is cut is taken over by another gateway. */
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

  /** The same ticket twice is one call. */
  async add(ticket: TicketData): Promise<void> {
    await this.#options.tickets.add(OUTBOUND_QUEUE, ticket, ORDER);
    this.wake();
    this.#options.wake();
  }

  /** Takes a call out of the queue; one that is being made goes on. */
  async remove(ticket: TicketData): Promise<void> {
    const { tickets } = this.#options;
    const found = await tickets.find(OUTBOUND_QUEUE, ticket);
    if (found === "queued" || found === "delayed") await tickets.discard(OUTBOUND_QUEUE, ticket);
  }

  /** Something may be queued, here or by another gateway. */
  wake(): void {
    this.#polls.wake(OUTBOUND_QUEUE);
  }

  /** Queues again what was popped longer ago than that by a gateway that did not come back to it. */
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
      // Somebody has to look when it falls due.
      this.wake();
    } catch (error) {
      onError(error);
    }
  }
}
