/**
 * Files in a bucket of any server that speaks S3. An object cannot grow, so a content is a chain of objects (pieces.ts). An
 * upload holds at most one piece in memory. Limit: a bucket does not say how full it is.
 */
import { Readable } from "node:stream";
import type { ByteRange, FileStore, StoredContent } from "../store.ts";
import { S3Client, type S3ClientOptions, S3Error } from "./client.ts";
import { PieceStore, type StoreLog } from "./piece-store.ts";
import { PieceWriter } from "./piece-writer.ts";
import { endOf } from "./pieces.ts";
import type { S3Credentials, S3Place } from "./place.ts";
import { probe, setupError } from "./probe.ts";

export interface S3StoreParts extends S3ClientOptions {
  readonly place: S3Place;
  readonly credentials: S3Credentials;
  readonly log: StoreLog;
}

export class S3Store implements FileStore {
  readonly place: string;
  readonly #place: S3Place;
  readonly #client: S3Client;
  readonly #pieces: PieceStore;

  constructor({ place, credentials, log, ...options }: S3StoreParts) {
    this.place = `s3://${place.bucket}/${place.prefix}`;
    this.#place = place;
    this.#client = new S3Client(place, credentials, options);
    this.#pieces = new PieceStore(this.#client, place.prefix, this.place, log);
  }

  /** A bucket that does not answer now is no reason not to start: everything but files works without it. */
  async prepare(): Promise<void> {
    try {
      await probe(this.#client, this.#place.prefix);
    } catch (error) {
      if (!(error instanceof S3Error)) throw error;
      if (!error.isPassing) throw setupError(error, this.#place);
      this.#pieces.report(error);
    }
  }

  async freeBytes(): Promise<null> {
    return null;
  }

  async size(name: string): Promise<number> {
    return endOf(await this.#pieces.chain(name));
  }

  async append(name: string, offset: number, bytes: AsyncIterable<Uint8Array>): Promise<void> {
    const writer = new PieceWriter(this.#pieces, name, offset);
    try {
      for await (const chunk of bytes) await writer.write(chunk);
    } catch (error) {
      // What arrived before a broken connection is kept.
      if (!writer.hasFailed) await writer.flush().catch(() => {});
      throw error;
    }
    await writer.flush();
  }

  /** Nothing to do: a piece survives a crash once its PUT is answered. */
  async seal(): Promise<void> {}

  async read(name: string, range?: ByteRange): Promise<Readable> {
    const chain = await this.#pieces.chain(name);
    const end = endOf(chain);
    const { first, last } = range ?? { first: 0, last: end - 1 };
    if (last >= end) throw new Error("the content in the bucket is shorter than the range");
    return readableOf((signal) => this.#pieces.bytes(chain, { first, last }, signal));
  }

  async remove(name: string): Promise<void> {
    await this.#pieces.dropAll(name);
  }

  contents(): AsyncIterable<StoredContent> {
    return this.#pieces.contents();
  }
}

/** Not Readable.from(): a stream that is destroyed ends a call that waits, too. */
function readableOf(open: (signal: AbortSignal) => AsyncGenerator<Uint8Array>): Readable {
  const ended = new AbortController();
  const bytes = open(ended.signal);
  return new Readable({
    read() {
      bytes.next().then(
        ({ value }) => this.push(value ?? null),
        (error: unknown) => this.destroy(error instanceof Error ? error : new Error(String(error))),
      );
    },
    destroy(error, done) {
      ended.abort();
      done(error);
    },
  });
}
