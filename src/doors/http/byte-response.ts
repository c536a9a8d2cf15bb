/** A response whose bytes are read while they are sent, no faster than its reader takes them. */
import type { ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

export interface ByteSource {
  /** Called once, unless only the headers are asked for. */
  readonly open: () => Promise<Readable>;
  /** Called once, when the last byte is sent or the connection ends. */
  readonly close: () => void;
}

const STALLED_MS = 60_000;

export class ByteResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly #source: ByteSource;

  constructor(status: number, headers: Readonly<Record<string, string>>, source: ByteSource) {
    this.status = status;
    this.headers = headers;
    this.#source = source;
  }

  /** `common` are the headers of every response. A source that fails half-way ends the connection. */
  writeTo(outgoing: ServerResponse, common: Readonly<Record<string, string>>, isHead: boolean): void {
    void this.#write(outgoing, common, isHead);
  }

  async #write(
    outgoing: ServerResponse,
    common: Readonly<Record<string, string>>,
    isHead: boolean,
  ): Promise<void> {
    outgoing.writeHead(this.status, { ...common, ...this.headers });
    // A reader that takes nothing holds a place among the transfers.
    outgoing.setTimeout(STALLED_MS, () => outgoing.destroy());
    try {
      if (isHead) outgoing.end();
      else await pipeline(await this.#source.open(), outgoing);
    } catch {
      outgoing.destroy();
    } finally {
      outgoing.setTimeout(0);
      this.#source.close();
    }
  }
}
