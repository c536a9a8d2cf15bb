/**
 * Waits for a change of one delegation at this gateway: by its events, and by the records that this gateway's own moves
 * return before the feed delivers their events.
 */
import type { Entry } from "../../events/entry.ts";
import type { Feed } from "../../events/feed.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import type { Writer } from "../../lifecycle/writer.ts";
import type { Shards } from "../../redis/shards.ts";
import type { StopSignal } from "../../util/stop-signal.ts";
import { waitUntil } from "../events/wait.ts";

export interface WaitOptions {
  readonly wait_seconds: number;
  readonly signal: StopSignal;
}

/** The change that ends the wait: a test for records, and one for events. */
export interface Until {
  readonly record: (record: StoredDelegation) => boolean;
  readonly entry: (entry: Entry) => boolean;
}

export interface Waiter {
  /** True if the record was up to date when the wait began; then it need not be read again. */
  isCurrent(record: StoredDelegation): boolean;
  /** Resolves when the wait ends: to the changed record if a move of this gateway returned it. */
  done(): Promise<StoredDelegation | undefined>;
  /** Must be called once, also when the wait is over. */
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
    let changed: StoredDelegation | undefined;
    const event = waitUntil(feed, id, options, until.entry);
    const receive = (record: StoredDelegation) => {
      if (!until.record(record)) return;
      changed = record;
      event.stop();
    };
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting.add(receive));
    return {
      isCurrent: (record) => !feed.mayHaveDelivered(shards.indexOfId(id) ?? 0, id, record.get("event_id")),
      done: async () => {
        await event.done;
        // The feed may be faster than the answer to this gateway's own move.
        if (!changed) await writer.underWay(id)?.catch(() => {});
        return changed;
      },
      stop: () => {
        event.stop();
        waiting.delete(receive);
        if (waiting.size === 0 && this.#waiting.get(id) === waiting) this.#waiting.delete(id);
      },
    };
  }

  /** Call it with each record that a move of this gateway returned. */
  notify(record: StoredDelegation): void {
    for (const receive of this.#waiting.get(record.id) ?? []) receive(record);
  }
}
