/** Writes the bytes of one request as pieces. */
import { PieceBuffer } from "./piece-buffer.ts";
import type { PieceStore } from "./piece-store.ts";
import type { Piece } from "./pieces.ts";

const PIECE_BYTES = 8 * 1024 * 1024;
/** A shorter last piece is written again together with what follows, so that short requests do not leave many objects. */
const SHORT_BYTES = 1024 * 1024;

export class PieceWriter {
  /** Whether a piece could not be stored. */
  hasFailed = false;
  readonly #store: PieceStore;
  readonly #name: string;
  readonly #offset: number;
  readonly #buffer = new PieceBuffer(PIECE_BYTES);
  /** Where the buffer begins; undefined before the first byte. */
  #start: number | undefined;
  /** The short piece with whose bytes the buffer begins. */
  #tail: Piece | undefined;

  constructor(store: PieceStore, name: string, offset: number) {
    this.#store = store;
    this.#name = name;
    this.#offset = offset;
  }

  async write(chunk: Uint8Array): Promise<void> {
    if (this.#start === undefined) await this.#try(() => this.#begin());
    for (let rest = chunk; rest.length > 0; ) {
      rest = this.#buffer.add(rest);
      if (this.#buffer.isFull) await this.flush();
    }
  }

  /** Stores what there is. */
  async flush(): Promise<void> {
    const { size } = this.#buffer;
    const from = this.#start;
    if (from === undefined || size === 0) return;
    await this.#try(() => this.#store.put(this.#name, from, this.#buffer));
    this.#start = from + size;
    if (this.#tail !== undefined) await this.#store.drop(this.#tail);
    this.#tail = undefined;
  }

  async #begin(): Promise<void> {
    const last = this.#offset === 0 ? undefined : (await this.#store.chain(this.#name)).at(-1);
    this.#start = this.#offset;
    if (last === undefined || last.size >= SHORT_BYTES || last.offset + last.size !== this.#offset) return;
    const range = { first: last.offset, last: this.#offset - 1 };
    const { signal } = new AbortController();
    for await (const chunk of this.#store.bytes([last], range, signal)) this.#buffer.add(chunk);
    this.#tail = last;
    this.#start = last.offset;
  }

  async #try(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.hasFailed = true;
      throw error;
    }
  }
}
