/**
 * Captures a command's output in bounded memory: its head is the reply, its tail the reason of a failure, its latest
 * line the progress.
 */
import { StringDecoder } from "node:string_decoder";
import { truncate } from "../../schema/text.ts";

/** The decoder's replacement for bytes that are not UTF-8. */
const UNDECODABLE = "\uFFFD";

/** Keeps the first bytes, and counts all. */
export class Head {
  readonly #max: number;
  readonly #chunks: Buffer[] = [];
  #kept = 0;
  #total = 0;

  constructor(max: number) {
    this.#max = max;
  }

  add(chunk: Buffer): void {
    this.#total += chunk.length;
    const part = chunk.subarray(0, this.#max - this.#kept);
    if (part.length === 0) return;
    this.#kept += part.length;
    this.#chunks.push(part);
  }

  get total(): number {
    return this.#total;
  }

  get isWhole(): boolean {
    return this.#kept === this.#total;
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }
}

/** Keeps the last bytes. */
export class Tail {
  readonly #max: number;
  #bytes: Buffer = Buffer.alloc(0);
  #cut = false;

  constructor(max: number) {
    this.#max = max;
  }

  add(chunk: Buffer): void {
    const all = Buffer.concat([this.#bytes, chunk]);
    this.#cut ||= all.length > this.#max;
    this.#bytes = all.subarray(Math.max(0, all.length - this.#max));
  }

  /** The kept text, without the first line if that is probably incomplete. */
  text(): string {
    const text = this.#bytes.toString("utf8");
    const lineEnd = text.indexOf("\n");
    const whole = this.#cut && lineEnd >= 0 && lineEnd < text.length - 1 ? text.slice(lineEnd + 1) : text;
    return whole.trim();
  }
}

/**
 * Finds the latest line of text that is not blank. A carriage return also ends a line, because progress bars use it.
 * Lines that are not UTF-8 are skipped. After a NUL byte, which no text has, the rest is taken as binary.
 */
export class LatestLine {
  readonly #decoder = new StringDecoder("utf8");
  readonly #maxRest: number;
  #rest = "";
  #isBinary = false;

  constructor(maxRest: number) {
    this.#maxRest = maxRest;
  }

  /** The latest line that this chunk completes, if any. */
  add(chunk: Buffer): string | undefined {
    this.#isBinary ||= chunk.includes(0);
    if (this.#isBinary) return undefined;
    const lines = (this.#rest + this.#decoder.write(chunk)).split(/[\r\n]+/);
    // Only the beginning of a very long line is shown, so the rest is dropped.
    this.#rest = truncate(lines.pop() ?? "", this.#maxRest);
    return lines.findLast((line) => line.trim() !== "" && !line.includes(UNDECODABLE));
  }
}

/** At most `max` bytes of UTF-8, cut between characters. */
export function cutBytes(text: string, max: number): string {
  if (Buffer.byteLength(text) <= max) return text;
  // A streaming decoder drops an incomplete character at the end.
  return new TextDecoder().decode(Buffer.from(text).subarray(0, max), { stream: true });
}
