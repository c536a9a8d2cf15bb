/**
 * The bytes of the next piece, until there are enough for an object. They are copied into blocks, because a slow client's
 * chunks of a few bytes would each keep a large block of the network alive.
 */
import { createHash, type Hash } from "node:crypto";
import type { S3Body } from "./client.ts";

const BLOCK_BYTES = 65_536;

export class PieceBuffer {
  readonly #mostBytes: number;
  #blocks: Buffer[] = [];
  #size = 0;
  #hash: Hash = createHash("sha256");

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  get size(): number {
    return this.#size;
  }

  get isFull(): boolean {
    return this.#size === this.#mostBytes;
  }

  /** Takes as much as there is room for; returns the rest. */
  add(bytes: Uint8Array): Uint8Array {
    const taken = bytes.subarray(0, this.#mostBytes - this.#size);
    this.#hash.update(taken);
    for (let from = 0; from < taken.length; ) {
      const at = this.#size % BLOCK_BYTES;
      if (at === 0) this.#blocks.push(Buffer.allocUnsafeSlow(BLOCK_BYTES));
      const part = taken.subarray(from, from + BLOCK_BYTES - at);
      this.#blocks.at(-1)?.set(part, at);
      from += part.length;
      this.#size += part.length;
    }
    return bytes.subarray(taken.length);
  }

  /** The bytes and their SHA-256; the buffer is empty afterwards. */
  take(): S3Body {
    const size = this.#size;
    const sha256 = this.#hash.digest("hex");
    const blocks = this.#blocks.map((block, at) => block.subarray(0, size - at * BLOCK_BYTES));
    this.#blocks = [];
    this.#size = 0;
    this.#hash = createHash("sha256");
    return { blocks, size, sha256 };
  }
}
