/** The content of parts: bytes that are in them, and files of the broker. */
import type { Part } from "../schema/a2a.ts";
import { fromBase64 } from "../util/base64.ts";
import { joined } from "../util/joined.ts";
import type { Http } from "./http.ts";

export interface DownloadOptions {
  readonly signal?: AbortSignal | undefined;
}

type Content = Pick<Part, "raw" | "text" | "url">;
/** A part, or a message or an artifact with parts. */
export type Downloadable = Content | { readonly parts: readonly Content[] };

/**
 * The bytes of a part, or of all parts of a message or an artifact, one after the other, once they are asked for: `for await`
 * gives them as they arrive, `bytes` and `text` all of them. Parts with data have none. Throws `file_not_found`, and
 * `invalid_request` for the `url` of another server.
 */
export class Download implements AsyncIterable<Uint8Array> {
  readonly #http: Http;
  readonly #parts: readonly Content[];
  readonly #signal: AbortSignal | undefined;

  constructor(http: Http, what: Downloadable, { signal }: DownloadOptions = {}) {
    this.#http = http;
    this.#parts = "parts" in what ? what.parts : [what];
    this.#signal = signal;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    for (const { raw, text, url } of this.#parts) {
      if (raw !== undefined) yield fromBase64(raw);
      if (text !== undefined) yield new TextEncoder().encode(text);
      if (url !== undefined) yield* await this.#read(url);
    }
  }

  /** All bytes in memory. */
  async bytes(): Promise<Uint8Array<ArrayBuffer>> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of this) chunks.push(chunk);
    return joined(chunks);
  }

  /** All bytes as UTF-8. */
  async text(): Promise<string> {
    return new TextDecoder().decode(await this.bytes());
  }

  async #read(url: string): Promise<AsyncIterable<Uint8Array>> {
    // Loaded only when it is needed: pages load this file.
    const { readFile } = await import("./read-file.ts");
    return readFile(this.#http, url, this.#signal);
  }
}
