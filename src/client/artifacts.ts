/**
 * Output before the reply: chunks of artifacts, in order, each kept once, across cut connections. Limit: holds
 * what was sent under the lease, up to the broker's 3 MiB a delegation.
 */
import * as z from "zod";
import type { Artifact } from "../schema/a2a.ts";
import type { Lease } from "../schema/lease.ts";
import { ErrandApiError, isFull } from "./errors.ts";
import { type Http, route } from "./http.ts";
import { type LeaseKeeper, LeaseLostError } from "./lease-keeper.ts";
import type { Outage } from "./outage.ts";

export interface ChunkOptions {
  /** Default false: it replaces the artifact with its `artifactId`. True adds its parts to it. */
  readonly append?: boolean | undefined;
  /** Tells who watches that this artifact is whole. Default false. */
  readonly lastChunk?: boolean | undefined;
}

interface Chunk {
  readonly artifact: Artifact;
  readonly lastChunk: boolean;
}

export class Artifacts {
  readonly #http: Http;
  readonly #outage: Outage;
  readonly #keeper: LeaseKeeper;
  readonly #path: string;
  /** What makes up each artifact so far; first what was sent before a question. */
  readonly #kept: Map<string, readonly Chunk[]>;
  #last: Promise<void> = Promise.resolve();

  constructor(http: Http, outage: Outage, keeper: LeaseKeeper) {
    const { lease_id, delegation }: Lease = keeper.lease;
    this.#http = http;
    this.#outage = outage;
    this.#keeper = keeper;
    this.#path = route`/v1/leases/${lease_id}/artifacts`;
    this.#kept = new Map(
      delegation.artifacts.map((artifact) => [artifact.artifactId, [{ artifact, lastChunk: false }]]),
    );
  }

  /** One after the other, in the order of asking. Who does not wait for it is spared an unhandled rejection. */
  send(artifact: Artifact, { append = false, lastChunk = false }: ChunkOptions = {}): Promise<void> {
    const sent = this.#last.then(() => this.#send({ artifact, lastChunk }, append));
    this.#last = sent.catch(() => undefined);
    return sent;
  }

  /** Once nothing is on its way any more. */
  settled(): Promise<void> {
    return this.#last;
  }

  async #send(chunk: Chunk, append: boolean): Promise<void> {
    const { signal } = this.#keeper;
    const id = chunk.artifact.artifactId;
    const chunks = [...(append ? (this.#kept.get(id) ?? []) : []), chunk];
    let from = chunks.length - 1;
    for (let failures = 0; from < chunks.length; ) {
      signal.throwIfAborted();
      try {
        await this.#post(chunks[from], from > 0, signal);
        from += 1;
        failures = 0;
      } catch (error) {
        signal.throwIfAborted();
        this.#keeper.judge(error);
        const { lost } = this.#keeper;
        if (lost !== null) throw new LeaseLostError(lost);
        if (isFull(error)) throw error;
        await this.#outage.backOff(error, failures, signal);
        // It may be there already; appended again it would be there twice, so the whole is sent anew.
        if (!(error instanceof ErrandApiError && error.status === 429)) from = 0;
        failures += 1;
      }
    }
    this.#outage.over();
    this.#kept.set(id, chunks);
  }

  async #post(chunk: Chunk | undefined, append: boolean, signal: AbortSignal): Promise<void> {
    const body = { artifact: chunk?.artifact, append, last_chunk: chunk?.lastChunk };
    await this.#http.request(z.unknown(), { method: "POST", path: this.#path, body, signal });
  }
}
