/**
 * The pieces of contents in a bucket, below `<prefix><name>/`: lists, reads, writes and deletes them. Logs each call that
 * failed for good.
 */

import { UPLOAD_ID } from "../../../schema/file.ts";
import { backoffMs, sleep } from "../../../util/timing.ts";
import { storageUnavailable } from "../file-errors.ts";
import { type ByteRange, type StoredContent, StoreFullError } from "../store.ts";
import { type S3Client, S3Error, unanswered } from "./client.ts";
import type { ObjectPage, StoredObject } from "./object-list.ts";
import type { PieceBuffer } from "./piece-buffer.ts";
import { chainOf, endOf, type Piece, pieceKey, writtenAt } from "./pieces.ts";

const DELETES_AT_ONCE = 8;
/** How often in a row a download may break off without a byte in between. */
const READ_ATTEMPTS = 4;
const LONGEST_PAUSE_MS = 2_000;

/** The part of the log that the store needs. */
export interface StoreLog {
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
}

export class PieceStore {
  readonly #client: S3Client;
  readonly #prefix: string;
  readonly #place: string;
  readonly #log: StoreLog;

  /** `place`: the bucket, for the log. */
  constructor(client: S3Client, prefix: string, place: string, log: StoreLog) {
    this.#client = client;
    this.#prefix = prefix;
    this.#place = place;
    this.#log = log;
  }

  /** The pieces of a content, in order. */
  async chain(name: string): Promise<readonly Piece[]> {
    return chainOf(await this.#objects(name));
  }

  async put(name: string, offset: number, buffer: PieceBuffer): Promise<void> {
    await this.#guarded(this.#client.put(pieceKey(this.#folder(name), offset), buffer.take()));
  }

  /** Of a piece whose bytes are in another one. Not urgent: it goes with its content at the latest. */
  async drop({ key }: Piece): Promise<void> {
    await this.#client.delete(key).catch(() => {});
  }

  async dropAll(name: string): Promise<void> {
    const objects = await this.#objects(name);
    for (let at = 0; at < objects.length; at += DELETES_AT_ONCE) {
      const some = objects.slice(at, at + DELETES_AT_ONCE);
      await this.#guarded(Promise.all(some.map(({ key }) => this.#client.delete(key))));
    }
  }

  /** Bytes of a content. After a break it goes on where it was. */
  async *bytes(
    chain: readonly Piece[],
    { first, last }: ByteRange,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    let at = first;
    for (const { key, offset, size } of chain) {
      const end = Math.min(offset + size, last + 1);
      for (let failures = 0; at >= offset && at < end; ) {
        const body = await this.#guarded(
          this.#client.get(key, { first: at - offset, last: end - 1 - offset }, signal),
          signal,
        );
        try {
          for await (const chunk of body) {
            failures = 0;
            at += chunk.length;
            yield chunk;
          }
        } catch (error) {
          failures += 1;
          if (signal.aborted || failures === READ_ATTEMPTS) throw this.#refusal(unanswered(error), signal);
          await sleep(backoffMs(failures - 1, 0, LONGEST_PAUSE_MS), signal);
        }
      }
    }
  }

  report({ status, code }: S3Error): void {
    this.#log.warn({ bucket: this.#place, status, code }, "the bucket of the files failed");
  }

  /** Of all contents. A list has the objects of one after the other. */
  async *contents(): AsyncGenerator<StoredContent> {
    let name = "";
    let objects: StoredObject[] = [];
    for await (const object of this.#below(this.#prefix)) {
      const [folder = ""] = object.key.slice(this.#prefix.length).split("/");
      if (folder !== name) {
        if (objects.length > 0) yield contentOf(name, objects);
        objects = [];
        name = folder;
      }
      // Other objects below the prefix are none of the broker's.
      if (UPLOAD_ID.test(folder)) objects.push(object);
    }
    if (objects.length > 0) yield contentOf(name, objects);
  }

  async #objects(name: string): Promise<readonly StoredObject[]> {
    const objects: StoredObject[] = [];
    for await (const object of this.#below(this.#folder(name))) objects.push(object);
    return objects;
  }

  async *#below(prefix: string): AsyncGenerator<StoredObject> {
    let token: string | null = null;
    do {
      const page: ObjectPage = await this.#guarded(this.#client.list(prefix, token));
      yield* page.objects;
      token = page.next;
    } while (token !== null);
  }

  #folder(name: string): string {
    return `${this.#prefix}${name}/`;
  }

  async #guarded<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
    try {
      return await work;
    } catch (error) {
      throw this.#refusal(error, signal);
    }
  }

  #refusal(error: unknown, signal?: AbortSignal): unknown {
    if (!(error instanceof S3Error) || signal?.aborted) return error;
    this.report(error);
    return error.isFull ? new StoreFullError(`${this.#place} is full`) : storageUnavailable(error);
  }
}

const contentOf = (name: string, objects: readonly StoredObject[]): StoredContent => ({
  name,
  size: endOf(chainOf(objects)),
  changedAt: Math.max(...objects.map(({ key }) => writtenAt(key))),
});
