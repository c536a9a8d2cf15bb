/**
 * Bounds the bytes of unread responses, per caller and in total. Limit: small responses are not counted; a connection has
 * few of them, and listener.ts closes it when its reader stalls.
 */
import type { ServerResponse } from "node:http";
import type { Hold } from "../../events/replay-pace.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { AbortListener, StopSignal } from "../../util/stop-signal.ts";
import { OwnedBytes } from "./owned-bytes.ts";

/** The size of one write; a response up to this size is not counted. */
export const CHUNK_BYTES = 64 * 1024;

const NOTHING: Hold = { set: () => {}, release: () => {} };

interface Unread {
  readonly owner: string;
  bytes: number;
  /** When its reader last read something, by `now`. */
  readAt: number;
  readonly cut: () => void;
}

export interface OutflowOptions {
  readonly now: () => number;
  /** Called when the connection of an unread response is closed. */
  readonly onCut: (owner: string, bytes: number) => void;
  readonly maxPerOwner?: number;
  readonly maxTotal?: number;
  /** Of all addresses without a token. */
  readonly maxOfAddresses?: number;
}

export class Outflow {
  readonly #options: OutflowOptions;
  readonly #maxPerOwner: number;
  readonly #maxTotal: number;
  readonly #maxOfAddresses: number;
  readonly #unread = new Map<string, Set<Unread>>();
  readonly #bytes = new OwnedBytes();
  readonly #waiting = new Set<() => void>();

  constructor(options: OutflowOptions) {
    this.#options = options;
    this.#maxPerOwner = options.maxPerOwner ?? LIMITS.unread_bytes.value;
    this.#maxTotal = options.maxTotal ?? LIMITS.gateway_unread_bytes.value;
    this.#maxOfAddresses = options.maxOfAddresses ?? LIMITS.anonymous_unread_bytes.value;
  }

  /** The bytes of large unread responses: of one caller, or of all. */
  unread(owner?: string): number {
    return this.#bytes.of(owner);
  }

  /** Writes the body of a response whose head is written, at the reader's pace. */
  send(outgoing: ServerResponse, body: Buffer, owner: string): void {
    const entry = this.#add(owner, body.length, () => {
      outgoing.destroy();
      outgoing.req.socket.destroy();
    });
    let at = 0;
    const write = () => {
      entry.readAt = this.#options.now();
      while (at < body.length) {
        const chunk = body.subarray(at, at + CHUNK_BYTES);
        at += chunk.length;
        if (at === body.length) outgoing.end(chunk);
        else if (!outgoing.write(chunk)) return;
      }
    };
    outgoing.on("drain", write);
    outgoing.once("close", () => this.#release(entry));
    write();
    this.#makeRoom(entry);
  }

  /**
   * Writes a web stream to a response whose head is written. It is read as fast as it is produced, so that all of it that is
   * unread is counted here; a response that is too large alone is cut, too.
   */
  async pipe(outgoing: ServerResponse, body: ReadableStream<Uint8Array>, owner: string): Promise<void> {
    const reader = body.getReader();
    const cut = () => {
      outgoing.destroy();
      outgoing.req.socket.destroy();
    };
    const entry = this.#add(owner, 0, cut);
    outgoing.once("close", () => {
      this.#release(entry);
      reader.cancel().catch(() => {});
    });
    try {
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        const { value } = next;
        if (outgoing.destroyed) return;
        this.#resize(entry, entry.bytes + value.length);
        outgoing.write(value, () => {
          entry.readAt = this.#options.now();
          this.#resize(entry, entry.bytes - value.length);
        });
        this.#makeRoom(entry);
        if (entry.bytes <= this.#maxPerOwner) continue;
        this.#options.onCut(owner, entry.bytes);
        cut();
      }
      outgoing.end();
    } catch {
      // The source failed; the client must not take what it got for all.
      cut();
    }
  }

  /** Waits until a stream may buffer this many bytes for its reader; resolves to a function that releases them. */
  async reserve(owner: string, bytes: number, cut: () => void): Promise<() => void> {
    if (bytes <= CHUNK_BYTES) return () => {};
    const held = await this.hold(owner, bytes, cut);
    return () => held.release();
  }

  /**
   * Waits until a stream may load this many bytes for its reader, who may take less, or leave: then it waits no longer, and
   * nothing is counted.
   */
  async hold(owner: string, bytes: number, cut: () => void, signal?: StopSignal): Promise<Hold> {
    let resume = () => {};
    const left: AbortListener = {
      handleEvent: () => {
        this.#waiting.delete(resume);
        resume();
      },
    };
    signal?.addEventListener("abort", left);
    while (this.#isFull(owner, bytes) && !signal?.aborted) {
      await new Promise<void>((resolve) => {
        resume = resolve;
        this.#waiting.add(resume);
      });
    }
    signal?.removeEventListener("abort", left);
    if (signal?.aborted) return NOTHING;
    const entry = this.#add(owner, bytes, cut);
    return {
      set: (loaded) => {
        // Of a small rest nothing is counted.
        this.#resize(entry, loaded <= CHUNK_BYTES ? 0 : loaded);
      },
      release: () => this.#release(entry),
    };
  }

  #isFull(owner: string, bytes: number): boolean {
    const own = this.unread(owner);
    return (
      (own > 0 && own + bytes > this.#maxPerOwner) || (own > 0 && this.unread() + bytes > this.#maxTotal)
    );
  }

  #add(owner: string, bytes: number, cut: () => void): Unread {
    const entry: Unread = { owner, bytes, cut, readAt: this.#options.now() };
    const own = this.#unread.get(owner) ?? new Set();
    this.#unread.set(owner, own.add(entry));
    this.#bytes.add(owner, bytes);
    return entry;
  }

  #release(entry: Unread): void {
    const { owner, bytes } = entry;
    const own = this.#unread.get(owner);
    if (!own?.delete(entry)) return;
    this.#bytes.add(owner, -bytes);
    if (own.size === 0) this.#unread.delete(owner);
    this.#resumeAll();
  }

  #resize(entry: Unread, bytes: number): void {
    if (!this.#unread.get(entry.owner)?.has(entry)) return;
    const isLess = bytes < entry.bytes;
    this.#bytes.add(entry.owner, bytes - entry.bytes);
    entry.bytes = bytes;
    if (isLess) this.#resumeAll();
  }

  #resumeAll(): void {
    if (this.#waiting.size === 0) return;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const resume of waiting) resume();
  }

  /** Closes the connections idle for longest: first of this caller, then of the caller with the most unread bytes. */
  #makeRoom(newest: Unread): void {
    while (this.unread(newest.owner) > this.#maxPerOwner && this.#cutOne(newest.owner, newest));
    while (
      this.#bytes.ofAddresses > this.#maxOfAddresses &&
      this.#cutOne(this.#bytes.largestAddress(), newest)
    );
    while (this.unread() > this.#maxTotal && this.#cutOne(this.#bytes.largest(), newest));
  }

  #cutOne(owner: string, spare: Unread): boolean {
    let stalest: Unread | undefined;
    for (const entry of this.#unread.get(owner) ?? []) {
      if (entry !== spare && (!stalest || entry.readAt < stalest.readAt)) stalest = entry;
    }
    if (!stalest) return false;
    this.#release(stalest);
    this.#options.onCut(owner, stalest.bytes);
    stalest.cut();
    return true;
  }
}
