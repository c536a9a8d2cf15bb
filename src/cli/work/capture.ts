/**
 * A command's output with bounded memory: the head of it as the reply, the tail of it as the reason of a
 * failure, its latest line as progress. Limit: what goes beyond the bound is counted, not kept.
 */
import { StringDecoder } from "node:string_decoder";
import { truncate } from "../../schema/text.ts";

/** The first bytes, and how many there were. */
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

/** The last bytes. */
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

  /** Whole lines where possible: the first one is likely to be cut. */
  text(): string {
    const text = this.#bytes.toString("utf8");
    const lineEnd = text.indexOf("\n");
    const whole = this.#cut && lineEnd >= 0 && lineEnd < text.length - 1 ? text.slice(lineEnd + 1) : text;
    return whole.trim();
  }
}

/** The latest line that is not blank; a carriage return ends a line too, as progress bars have it. */
export class LatestLine {
  readonly #decoder = new StringDecoder("utf8");
  readonly #maxRest: number;
  #rest = "";

  constructor(maxRest: number) {
    this.#maxRest = maxRest;
  }

  /** What came to its end with this chunk, or nothing. */
  add(chunk: Buffer): string | undefined {
    const lines = (this.#rest + this.#decoder.write(chunk)).split(/[\r\n]+/);
    // Of an endless line the beginning is kept: it is what would be shown.
    this.#rest = truncate(lines.pop() ?? "", this.#maxRest);
    return lines.findLast((line) => line.trim() !== "");
  }
}

/** At most `max` bytes of UTF-8, cut on a character. */
export function cutBytes(text: string, max: number): string {
  if (Buffer.byteLength(text) <= max) return text;
  // An incomplete character at the end is held back by a streaming decoder.
  return new TextDecoder().decode(Buffer.from(text).subarray(0, max), { stream: true });
}
