/**
 * Sends output before the reply: chunks of artifacts, in order, each stored once, across broken connections. Chunks are
 * sent one at a time, because the broker recognizes a repeat by the id of the last chunk.
 */

import * as z from "zod";
import type { LeaseHolder } from "../lease-holder/lease-holder.ts";
import { LeaseLostError } from "../lease-holder/lost.ts";
import type { Artifact } from "../schema/a2a.ts";
import type { Lease } from "../schema/lease.ts";
import { onAbort } from "../util/timing.ts";
import { isFull } from "./errors.ts";
import { type FileOptions, sendFile } from "./files.ts";
import { type Http, route } from "./http.ts";
import type { Outage } from "./outage.ts";
import type { FileContent } from "./pieces.ts";
import { randomKey } from "./random-key.ts";
import { uploadPart } from "./upload.ts";

export interface ChunkOptions {
  /** True adds the parts to the artifact with the same `artifactId`. Default false: replaces that artifact. */
  readonly append?: boolean | undefined;
  /** Marks the artifact as complete. Default false. */
  readonly lastChunk?: boolean | undefined;
}

interface Chunk {
  readonly artifact: Artifact;
  readonly append: boolean;
  readonly last_chunk: boolean;
  /** The same for every retry, so the broker stores the chunk once. */
  readonly chunk_id: string;
}

export class Artifacts {
  readonly #http: Http;
  readonly #outage: Outage;
  readonly #holder: LeaseHolder;
  readonly #path: string;
  /** Ids of the artifacts that the broker has and that can be appended to; at first, those sent before a question. */
  readonly #known: Set<string>;
  #last: Promise<void> = Promise.resolve();
  /** Those whose last chunk is not sent yet. */
  readonly #files = new Set<Promise<void>>();

  constructor(http: Http, outage: Outage, holder: LeaseHolder) {
    const { lease_id, delegation }: Lease = holder.lease;
    this.#http = http;
    this.#outage = outage;
    this.#holder = holder;
    this.#path = route`/v1/leases/${lease_id}/artifacts`;
    this.#known = new Set(delegation.artifacts.map(({ artifactId }) => artifactId));
  }

  /** Sends chunks one after the other. A caller that does not await this gets no unhandled rejection. */
  send(artifact: Artifact, { append = false, lastChunk = false }: ChunkOptions = {}): Promise<void> {
    const sent = this.#last.then(() => this.#send(artifact, append, lastChunk));
    this.#last = sent.catch(() => undefined);
    return sent;
  }

  /** Sends a file: a small one in the artifact, a larger one by its URL. A caller that does not await this gets no unhandled rejection. */
  file(name: string, content: FileContent, options?: FileOptions): Promise<void> {
    const sender = {
      send: (artifact: Artifact, chunk: ChunkOptions) => this.send(artifact, chunk),
      upload: (filename: string, bytes: FileContent, mediaType: string) =>
        uploadPart(this.#http, filename, bytes, { mediaType, signal: this.#holder.callSignal }),
    };
    const sent = sendFile(sender, name, content, options);
    const settled = sent
      .catch(() => undefined)
      .finally(() => {
        this.#files.delete(settled);
      });
    this.#files.add(settled);
    return sent;
  }

  /** Resolves once all chunks are sent, or when none is accepted any more. */
  async settled(): Promise<void> {
    const { callSignal } = this.#holder;
    let unsubscribe = (): void => undefined;
    // A file may come from a stream that never ends.
    const over = new Promise<void>((resolve) => {
      unsubscribe = onAbort(callSignal, resolve);
      if (callSignal.aborted) resolve();
    });
    await Promise.race([Promise.all(this.#files), over]);
    unsubscribe();
    await this.#last;
  }

  async #send(artifact: Artifact, append: boolean, last_chunk: boolean): Promise<void> {
    const { callSignal: signal } = this.#holder;
    const { artifactId } = artifact;
    const chunk = {
      artifact,
      append: append && this.#known.has(artifactId),
      last_chunk,
      chunk_id: randomKey(),
    };
    for (let failures = 0; ; failures += 1) {
      signal.throwIfAborted();
      try {
        await this.#post(chunk, signal);
        break;
      } catch (error) {
        signal.throwIfAborted();
        this.#holder.judge(error);
        const { lost } = this.#holder;
        if (lost !== null) throw new LeaseLostError(lost);
        if (isFull(error)) throw error;
        await this.#outage.backOff(error, failures, signal);
      }
    }
    this.#outage.over();
    this.#known.add(artifactId);
  }

  async #post(body: Chunk, signal: AbortSignal): Promise<void> {
    await this.#http.request(z.unknown(), { method: "POST", path: this.#path, body, signal });
  }
}
