/**
 * Tickets are made together with their events, so the feed tells every gateway whose polls to wake. The gateway that
 * made one knows at once, and skips its own when the feed brings it. Limit: a ticket without an event (made again by the
 * sweep) is told by pub/sub.
 */
import type { Entry } from "../../events/entry.ts";
import type { Feed } from "../../events/feed.ts";
import { MOVES, type Move } from "../../lifecycle/states.ts";
import type { ParkedPolls } from "../../queue/parked-polls.ts";
import type { Shards } from "../../redis/shards.ts";
import type { LeaseRequest } from "../../schema/lease.ts";

/** Own events that the feed has not brought yet; more than that are not worth knowing. */
const MAX_OWN = 10_000;

const moves: readonly Move[] = Object.values(MOVES);
const STATUSES: ReadonlySet<string | undefined> = new Set(
  moves.flatMap(({ queue, status }) => (queue === "ticket" && status !== undefined ? [status] : [])),
);
const SENT = "DELEGATION_SENT";
const brings = (entry: Entry): boolean => entry.type === SENT || STATUSES.has(entry.status);

/** What a poll asks for. */
export interface Terms {
  readonly agent: string;
  readonly request: LeaseRequest;
}

/** Whoever at this gateway looks for work when it is told: parked polls, and what hands it to push agents. */
export type Wakers = Pick<ParkedPolls, "wake" | "wakeAll">;
type News = Pick<Feed, "subscribe" | "hasBrought">;

export class Told {
  readonly #wakers: Wakers;
  readonly #feed: News;
  readonly #shards: Shards;
  readonly #wake: (agent: string) => void;
  readonly #own = new Set<string>();
  /** Delegations whose first ticket is taken where it is made. */
  readonly #brought = new Set<string>();

  /** `wake` tells all gateways of a ticket that left no event. */
  constructor(wakers: Wakers, feed: News, shards: Shards, wake: (agent: string) => void) {
    this.#wakers = wakers;
    this.#feed = feed;
    this.#shards = shards;
    this.#wake = wake;
  }

  start(): void {
    this.#feed.subscribe(
      { kind: "all" },
      {
        push: (entry) => {
          // A delayed one may fall due together with others, and is looked for then.
          if (!brings(entry) || this.#own.delete(entry.id)) return;
          if (entry.type === SENT && this.#brought.delete(entry.delegation_id)) return;
          this.#wakers.wake(entry.target, false);
        },
        gap: () => this.#wakers.wakeAll(),
      },
    );
  }

  /** This gateway made a ticket for the agent, with that event. */
  by(agent: string, event_id: string | undefined): void {
    if (event_id === undefined) {
      this.#wake(agent);
      return;
    }
    // The feed was quicker than the script's answer, and has woken already.
    if (this.#feed.hasBrought(this.#shards.indexOfAgent(agent), event_id)) return;
    if (this.#own.size >= MAX_OWN) this.#own.clear();
    this.#own.add(event_id);
    this.#wakers.wake(agent, false);
  }

  /** A delegation is about to be made together with its ticket, and a poll to take it: the feed need wake nobody. */
  bring(id: string): void {
    if (this.#brought.size >= MAX_OWN) this.#brought.clear();
    this.#brought.add(id);
  }

  /** No poll took the ticket after all, if there is one; whoever makes it known wakes as ever. */
  notTaken(agent: string, id: string): void {
    if (!this.#brought.delete(id)) this.#wakers.wake(agent, false);
  }
}
