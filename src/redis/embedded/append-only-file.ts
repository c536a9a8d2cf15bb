/**
 * Prepares the append-only file of a Redis that died while it wrote a transaction.
 *
 * If the file ends within a command, Redis drops that command when it loads the file, but keeps the start of its
 * transaction. At the next load, everything that it wrote since counts as a part of that transaction: Redis runs both
 * or drops both (valkey-io/valkey#4342). If the file ends between two commands, Redis drops the whole transaction. So
 * the partial command is cut off before Redis starts. Limit: a file that was loaded and written again in this state
 * stays as it is.
 */
import { createReadStream } from "node:fs";
import { readFile, truncate } from "node:fs/promises";
import { join } from "node:path";

const CHUNK_BYTES = 1_048_576;

/**
 * Cuts off a partial command at the end of the file in `data` that Redis appends to, if it belongs to a transaction.
 * Does nothing without such a file, or if the file is damaged otherwise. No Redis may run on `data` meanwhile.
 */
export async function cutPartialCommand(data: string, chunkBytes = CHUNK_BYTES): Promise<void> {
  const folder = join(data, "appendonlydir");
  const manifest = await readFile(join(folder, "appendonly.aof.manifest"), "utf8").catch(() => "");
  const name = [...manifest.matchAll(/^file (\S+) seq \d+ type i/gm)].at(-1)?.[1];
  if (name === undefined) return;
  const file = join(folder, name);
  const scan = new CommandScan();
  for await (const chunk of createReadStream(file, { highWaterMark: chunkBytes })) scan.read(chunk);
  if (scan.cutAt !== undefined) await truncate(file, scan.cutAt);
}

const STAR = 42;
const DOLLAR = 36;
const HASH = 35;
const RETURN = 13;
const NEWLINE = 10;
const ZERO = 48;

/** Reads commands as Redis writes them: `*<arguments>`, then `$<bytes>` and the bytes of each; `#` starts a comment. */
class CommandScan {
  #position = 0;
  #commandEnd = 0;
  #inTransaction = false;
  #damaged = false;
  /** The first byte of the line that is being read, and the number after it. */
  #kind = 0;
  #number = 0;
  #argumentCount = 0;
  #argumentsLeft = 0;
  /** Bytes left of the present argument, with its line end. */
  #bytesLeft = 0;
  /** The text of a command without arguments, such as MULTI and EXEC. */
  #name = "";

  /** Where to cut the file; undefined if it ends between two commands or outside a transaction, or is damaged. */
  get cutAt(): number | undefined {
    const partial = this.#position > this.#commandEnd;
    return partial && this.#inTransaction && !this.#damaged ? this.#commandEnd : undefined;
  }

  read(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length && !this.#damaged) {
      if (this.#bytesLeft > 0) {
        const end = Math.min(chunk.length, at + this.#bytesLeft);
        if (this.#argumentCount === 1) this.#name += chunk.toString("latin1", at, end);
        this.#bytesLeft -= end - at;
        at = end;
        if (this.#bytesLeft === 0) this.#endArgument(this.#position + at);
      } else {
        this.#readByte(chunk[at] ?? 0, this.#position + at + 1);
        at += 1;
      }
    }
    this.#position += chunk.length;
  }

  #readByte(byte: number, next: number): void {
    if (this.#kind === 0) {
      const expected = this.#argumentsLeft > 0 ? byte === DOLLAR : byte === STAR || byte === HASH;
      this.#damaged = !expected;
      this.#kind = byte;
      this.#number = 0;
    } else if (byte === NEWLINE) {
      this.#endLine(next);
    } else if (byte !== RETURN && this.#kind !== HASH) {
      const digit = byte - ZERO;
      this.#damaged = digit < 0 || digit > 9;
      this.#number = this.#number * 10 + digit;
    }
  }

  #endLine(next: number): void {
    if (this.#kind === HASH) {
      this.#commandEnd = next;
    } else if (this.#kind === STAR) {
      this.#argumentCount = this.#number;
      this.#argumentsLeft = this.#number;
      this.#damaged = this.#number === 0;
    } else {
      this.#bytesLeft = this.#number + 2;
    }
    this.#kind = 0;
  }

  #endArgument(next: number): void {
    this.#argumentsLeft -= 1;
    if (this.#argumentsLeft > 0) return;
    if (this.#name === "MULTI\r\n") this.#inTransaction = true;
    if (this.#name === "EXEC\r\n") this.#inTransaction = false;
    this.#name = "";
    this.#commandEnd = next;
  }
}
