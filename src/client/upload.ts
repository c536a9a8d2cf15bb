/** Uploads a file in pieces, and continues where the broker is after each broken connection, also at another gateway. */
import * as z from "zod";
import type { Part } from "../schema/a2a.ts";
import { type StoredFile, type Upload, uploadSchema } from "../schema/file.ts";
import { backoffMs, onAbort, sleep } from "../util/timing.ts";
import { ErrandApiError, isUnavailable, localError } from "./errors.ts";
import { type Http, route } from "./http.ts";
import { type FileContent, lengthOf, piecesOf, typeOf } from "./pieces.ts";
import { randomKey } from "./random-key.ts";

/** A piece arrives within the 30 seconds of a request even over a slow line; one that does not is continued. */
const PIECE_BYTES = 2 * 1024 * 1024;
/** The broker ends a request that takes longer before. */
const PIECE_MS = 60_000;

export interface UploadOptions {
  /** Default: `text/plain` for a string, that of a Blob, otherwise `application/octet-stream`. */
  readonly mediaType?: string | undefined;
  /** The SHA-256 that the content must have, in hex. Any other content is refused (`hash_mismatch`). */
  readonly sha256?: string | undefined;
  /** How many bytes a stream has: the broker then refuses at once what is too large, and the stream must have as many. */
  readonly length?: number | undefined;
  /** Called after each piece, with the bytes that the broker has. */
  readonly onProgress?: ((bytes: number) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The part that names the uploaded file. */
export async function uploadPart(
  http: Http,
  filename: string,
  content: FileContent,
  options: UploadOptions = {},
): Promise<Part> {
  const { mediaType = typeOf(content) } = options;
  const { url, size } = await upload(http, content, options);
  return { url, filename, mediaType, metadata: { size } };
}

/** For as long as the broker is away, at most `retryForMs` without progress. */
export async function upload(
  http: Http,
  content: FileContent,
  { sha256, length = lengthOf(content), onProgress, signal }: UploadOptions = {},
): Promise<StoredFile> {
  const begun = await http.requestWithRetry(uploadSchema, {
    method: "POST",
    path: "/v1/uploads",
    query: { sha256 },
    headers: {
      ...(length === undefined ? { "upload-defer-length": "1" } : { "upload-length": String(length) }),
      // An upload whose answer was lost counts once.
      "idempotency-key": randomKey(),
    },
    signal,
  });
  const sending = new Sending(http, begun, signal);
  try {
    for await (const piece of whileNotAborted(piecesOf(content, PIECE_BYTES), signal)) {
      await sending.send(piece);
      onProgress?.(sending.offset);
    }
    return sending.file ?? (await sending.end());
  } catch (error) {
    await sending.giveUp();
    throw error;
  }
}

/** The source may stall, and knows nothing of the signal. */
async function* whileNotAborted<T>(
  source: AsyncGenerator<T>,
  signal: AbortSignal | undefined,
): AsyncGenerator<T> {
  let unsubscribe = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    if (signal) unsubscribe = onAbort(signal, () => reject(signal.reason));
    if (signal?.aborted) reject(signal.reason);
  });
  aborted.catch(() => undefined);
  try {
    for (;;) {
      const { value, done } = await Promise.race([source.next(), aborted]);
      if (done) return;
      yield value;
    }
  } finally {
    unsubscribe();
    // Not awaited: a stalled source does not end.
    source.return(undefined).catch(() => undefined);
  }
}

class Sending {
  readonly #http: Http;
  readonly #signal: AbortSignal | undefined;
  #upload: Upload;

  constructor(http: Http, begun: Upload, signal: AbortSignal | undefined) {
    this.#http = http;
    this.#upload = begun;
    this.#signal = signal;
  }

  get offset(): number {
    return this.#upload.offset;
  }

  get file(): StoredFile | null {
    return this.#upload.file;
  }

  /** Adds the bytes to what the broker has. */
  async send(piece: Uint8Array<ArrayBuffer>, headers: Readonly<Record<string, string>> = {}): Promise<void> {
    const begin = this.offset;
    let giveUpAt: number | undefined;
    for (let failures = 0; ; failures += 1) {
      const from = this.offset;
      if (from < begin || from > begin + piece.length) throw lostTrack(this.#upload.id);
      if (failures > 0 && from === begin + piece.length && piece.length > 0) return;
      try {
        this.#upload = await this.#http.request(uploadSchema, {
          method: "PATCH",
          path: route`/v1/uploads/${this.#upload.id}`,
          headers: { ...headers, "upload-offset": String(from) },
          bytes: piece.subarray(from - begin),
          timeoutMs: PIECE_MS,
          signal: this.#signal,
        });
        return;
      } catch (error) {
        if (!isBroken(error) || this.#http.failsFast(error)) throw error;
        giveUpAt ??= performance.now() + this.#http.retryForMs;
        const delayMs = backoffMs(failures, error.retryAfterMs);
        if (performance.now() + delayMs > giveUpAt) throw error;
        this.#http.onRetry?.(error, delayMs);
        await sleep(delayMs, this.#signal);
        await this.#look();
        // It moves on, however slowly.
        if (this.offset > from) giveUpAt = undefined;
      }
    }
  }

  /** Says that no more bytes come. */
  async end(): Promise<StoredFile> {
    await this.send(new Uint8Array(), { "upload-length": String(this.offset) });
    if (this.file === null) throw lostTrack(this.#upload.id);
    return this.file;
  }

  /** The broker would delete it after a day. */
  async giveUp(): Promise<void> {
    const call = { method: "DELETE", path: route`/v1/uploads/${this.#upload.id}` } as const;
    await this.#http.request(z.unknown(), call).catch(() => undefined);
  }

  async #look(): Promise<void> {
    const path = route`/v1/uploads/${this.#upload.id}`;
    this.#upload = await this.#http.requestWithRetry(uploadSchema, { path, signal: this.#signal });
  }
}

/** Whether it is not known how many bytes of the piece arrived. */
const isBroken = (error: unknown): error is ErrandApiError =>
  error instanceof ErrandApiError &&
  (isUnavailable(error) || error.code === "upload_offset" || error.status === 408);

const lostTrack = (id: string): ErrandApiError =>
  localError({
    code: "upload_offset",
    category: "PROTOCOL",
    detail: `another program changed the upload ${id}`,
    recovery: "Upload the file again.",
  });
