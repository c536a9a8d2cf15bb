/** Parses a stream of bytes item by item. An item is parsed as soon as all its bytes have arrived. */

/** Thrown by a {@link Cursor} that needs more bytes. One object, because an error with its stack is slow to make. */
const INCOMPLETE = new Error("more bytes are needed");

/** A place in the bytes that have arrived. */
export class Cursor {
  #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get at(): number {
    return this.#at;
  }

  /** The next bytes; they stay valid only until the next item is parsed. */
  take(length: number): Buffer {
    const from = this.#at;
    this.skip(length);
    return this.#bytes.subarray(from, this.#at);
  }

  skip(length: number): void {
    if (length > this.#bytes.length - this.#at) throw INCOMPLETE;
    this.#at += length;
  }

  byte(): number {
    const value = this.#bytes[this.#at];
    if (value === undefined) throw INCOMPLETE;
    this.#at += 1;
    return value;
  }

  /** The bytes between two places. */
  between(from: number, to: number): Buffer {
    return this.#bytes.subarray(from, to);
  }
}

/** The stream ended within an item. */
export class Truncated extends Error {
  override readonly name = "Truncated";
}

/**
 * Yields what `parse` returns for each item. `onItem` gets the bytes of each item before it is yielded.
 * Throws {@link Truncated} if the chunks end within an item.
 */
export async function* parseItems<T>(
  chunks: AsyncIterable<Uint8Array>,
  parse: (cursor: Cursor) => T,
  onItem: (bytes: Buffer) => void = () => undefined,
): AsyncGenerator<T> {
  let pending: Uint8Array[] = [];
  let left: Buffer = Buffer.alloc(0);
  let size = 0;
  let needed = 1;
  for await (const chunk of chunks) {
    pending.push(chunk);
    size += chunk.length;
    // An incomplete item is parsed again only when twice as much has arrived: large items stay linear.
    if (size < needed) continue;
    left = Buffer.concat(pending);
    let at = 0;
    for (;;) {
      const cursor = new Cursor(left.subarray(at));
      const item = attempt(parse, cursor);
      if (item === null) break;
      onItem(left.subarray(at, at + cursor.at));
      at += cursor.at;
      yield item.value;
    }
    left = left.subarray(at);
    pending = [left];
    size = left.length;
    needed = 2 * size;
  }
  // The last chunks may have been too short for another attempt.
  left = Buffer.concat(pending);
  while (left.length > 0) {
    const cursor = new Cursor(left);
    const item = attempt(parse, cursor);
    if (item === null) throw new Truncated("the data ends within an item");
    onItem(left.subarray(0, cursor.at));
    left = left.subarray(cursor.at);
    yield item.value;
  }
}

function attempt<T>(parse: (cursor: Cursor) => T, cursor: Cursor): { value: T } | null {
  try {
    return { value: parse(cursor) };
  } catch (error) {
    if (error === INCOMPLETE) return null;
    throw error;
  }
}
