/**
 * Bounds the bytes of answers that one caller, and all callers together, leave unread. Limit: small answers are not
 * counted; a connection has few of them, and the stall guard (listener.ts) closes it.
 */
import type { ServerResponse } from "node:http";
import { LIMITS } from "../../schema/limits.ts";

/** Written at a time; an answer up to this size is not counted. */
export const CHUNK_BYTES = 64 * 1024;

interface Held {
  readonly owner: string;
  readonly bytes: number;
  /** When its reader last took something, by `now`. */
  movedAt: number;
  readonly cut: () => void;
}

export interface OutflowOptions {
  readonly now: () => number;
  /** Called for each answer that is cut. */
  readonly onCut: (owner: string, bytes: number) => void;
  readonly mostOfOne?: number;
  readonly mostOfAll?: number;
}

export class Outflow {
  readonly #options: OutflowOptions;
  readonly #mostOfOne: number;
  readonly #mostOfAll: number;
  readonly #held = new Map<string, Set<Held>>();
  readonly #bytes = new Map<string, number>();
  readonly #waiting = new Set<() => void>();
  #total = 0;

  constructor(options: OutflowOptions) {
    this.#options = options;
    this.#mostOfOne = options.mostOfOne ?? LIMITS.unread_bytes.value;
    this.#mostOfAll = options.mostOfAll ?? LIMITS.gateway_unread_bytes.value;
  }

  /** Bytes of large answers that are not read yet: of one caller, or of all. */
  unread(owner?: string): number {
    return owner === undefined ? this.#total : (this.#bytes.get(owner) ?? 0);
  }

  /** Ends an answer whose head is written with this body, at its reader's pace. */
  send(outgoing: ServerResponse, body: Buffer, owner: string): void {
    const held = this.#hold(owner, body.length, () => {
      outgoing.destroy();
      outgoing.req.socket.destroy();
    });
    let at = 0;
    const write = () => {
      held.movedAt = this.#options.now();
      while (at < body.length) {
        const chunk = body.subarray(at, at + CHUNK_BYTES);
        at += chunk.length;
        if (at === body.length) outgoing.end(chunk);
        else if (!outgoing.write(chunk)) return;
      }
    };
    outgoing.on("drain", write);
    outgoing.once("close", () => this.#release(held));
    write();
    this.#makeRoom(held);
  }

  /** Waits until a stream may hold so many bytes for its reader; resolves to a function that releases them. */
  async reserve(owner: string, bytes: number, cut: () => void): Promise<() => void> {
    if (bytes <= CHUNK_BYTES) return () => {};
    while (this.#isFull(owner, bytes)) {
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
    const held = this.#hold(owner, bytes, cut);
    return () => this.#release(held);
  }

  #isFull(owner: string, bytes: number): boolean {
    const own = this.unread(owner);
    return (own > 0 && own + bytes > this.#mostOfOne) || (own > 0 && this.#total + bytes > this.#mostOfAll);
  }

  #hold(owner: string, bytes: number, cut: () => void): Held {
    const held: Held = { owner, bytes, cut, movedAt: this.#options.now() };
    const all = this.#held.get(owner) ?? new Set();
    this.#held.set(owner, all.add(held));
    this.#bytes.set(owner, this.unread(owner) + bytes);
    this.#total += bytes;
    return held;
  }

  #release(held: Held): void {
    const { owner, bytes } = held;
    const all = this.#held.get(owner);
    if (!all?.delete(held)) return;
    this.#total -= bytes;
    const left = this.unread(owner) - bytes;
    if (all.size > 0) this.#bytes.set(owner, left);
    else {
      this.#held.delete(owner);
      this.#bytes.delete(owner);
    }
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const look of waiting) look();
  }

  /** Cuts the answers whose readers are idle for longest: first of this caller, then of the one with most unread. */
  #makeRoom(newest: Held): void {
    while (this.unread(newest.owner) > this.#mostOfOne && this.#cutOne(newest.owner, newest));
    while (this.#total > this.#mostOfAll && this.#cutOne(this.#largest(), newest));
  }

  #largest(): string {
    let most = "";
    for (const [owner, bytes] of this.#bytes) if (bytes > this.unread(most)) most = owner;
    return most;
  }

  #cutOne(owner: string, spare: Held): boolean {
    let stalest: Held | undefined;
    for (const held of this.#held.get(owner) ?? []) {
      if (held !== spare && (!stalest || held.movedAt < stalest.movedAt)) stalest = held;
    }
    if (!stalest) return false;
    this.#release(stalest);
    this.#options.onCut(owner, stalest.bytes);
    stalest.cut();
    return true;
  }
}
