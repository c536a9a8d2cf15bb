/** Counts bytes of an upload for their principal while they pass, and stops a request that another has taken over. */
import type { Files } from "../broker.ts";
import { fileTooLarge, overQuota, tooLong, uploadNotFound, uploadTaken } from "./file-errors.ts";
import { requireSpace, type UsesFiles } from "./files.ts";
import { scripts } from "./scripts.ts";
import type { Claimed } from "./upload.ts";

/** How often Redis and the disk are asked: few round trips, and little that is counted in vain. */
const STEP_BYTES = 4 * 1024 * 1024;

export class CountedBytes {
  /** Up to where bytes have passed. */
  at = 0;
  readonly #broker: UsesFiles;
  readonly #files: Files;
  readonly #id: string;
  readonly #upload: Pick<Claimed, "writer" | "length">;
  /** Up to where bytes may pass without asking. */
  #allowed = 0;

  constructor(broker: UsesFiles, files: Files, id: string, upload: Pick<Claimed, "writer" | "length">) {
    this.#broker = broker;
    this.#files = files;
    this.#id = id;
    this.#upload = upload;
  }

  async *pass(offset: number, bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    this.at = offset;
    this.#allowed = offset;
    for await (const chunk of bytes) {
      await this.#reach(this.at + chunk.length);
      yield chunk;
      this.at += chunk.length;
    }
  }

  async #reach(to: number): Promise<void> {
    const { maxBytes, principalBytes, store } = this.#files;
    const { writer, length } = this.#upload;
    if (length !== undefined && to > length) throw tooLong(length);
    if (to > maxBytes) throw fileTooLarge(maxBytes);
    if (to <= this.#allowed) return;
    const next = Math.min(length ?? maxBytes, to + STEP_BYTES);
    await requireSpace(store, next - this.at);
    const answer = await scripts.count(this.#broker.redis, this.#id, writer, next, principalBytes);
    if (answer === "gone") throw uploadNotFound(this.#id);
    if (answer === "taken") throw uploadTaken(this.#id, this.at);
    if (answer !== "ok") throw overQuota(String(answer), this.#files);
    this.#allowed = next;
  }
}
