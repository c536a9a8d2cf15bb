/**
 * Waits for a change of one delegation at this gateway: by its events, and by the records that this gateway's own moves
 * return before the feed delivers their events.
 */
import type { Entry } from "../../events/entry.ts";
import type { Feed } from "../../events/feed.ts";
import type { StoredDelegation } from "../../lifecycle/record.ts";
import type { Writer } from "../../lifecycle/writer.ts";
import type { PollSignal } from "../../queue/parked-poll.ts";
import type { Shards } from "../../redis/shards.ts";
import { waitUntil } from "../events/wait.ts";

export interface WaitOptions {
  readonly wait_seconds: number;
  readonly signal: PollSignal;
}

/** The change that ends the wait, as a record shows it and as an event does. */
export interface Until {
  readonly record: (record: StoredDelegation) => boolean;
  readonly entry: (entry: Entry) => boolean;
}

export interface Waiter {
  /** Whether no event can have followed the record before the wait began, so that it need not be read again. */
  isCurrent(record: StoredDelegation): boolean;
  /** Resolves when the wait ends: to the changed record if a move of this gateway returned it. */
  done(): Promise<StoredDelegation | undefined>;
  /** Must be called in the end. */
  stop(): void;
}

interface Sources {
  readonly feed: Pick<Feed, "subscribe" | "mayHaveDelivered">;
  readonly writer: Pick<Writer, "underWay">;
  readonly shards: Shards;
}

export class LocalWaiters {
  readonly #sources: Sources;
  readonly #waiting = new Map<string, Set<(record: StoredDelegation) => void>>();

  constructor(sources: Sources) {
    this.#sources = sources;
  }

  add(id: string, options: WaitOptions, until: Until): Waiter {
    const { feed, writer, shards } = this.#sources;
    let given: StoredDelegation | undefined;
    const event = waitUntil(feed, id, options, until.entry);
    const take = (record: StoredDelegation) => {
      if (!until.record(record)) return;
      given = record;
      event.stop();
    };
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting.add(take));
    return {
      isCurrent: ({ event_id }) => !feed.mayHaveDelivered(shards.indexOfId(id) ?? 0, id, event_id),
      done: async () => {
        await event.done;
        // The feed may be faster than the answer to this gateway's own move.
        if (!given) await writer.underWay(id)?.catch(() => {});
        return given;
      },
      stop: () => {
        event.stop();
        waiting.delete(take);
        if (waiting.size === 0 && this.#waiting.get(id) === waiting) this.#waiting.delete(id);
      },
    };
  }

  /** A move of this gateway returned the record. */
  give(record: StoredDelegation): void {
    for (const take of this.#waiting.get(record.id) ?? []) take(record);
  }
}
