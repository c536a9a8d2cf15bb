/**
 * Files in a folder, one for each content. Several gateways may use it at once. Limit: gateways on other machines need the
 * same folder, mounted.
 */
import { constants, createReadStream } from "node:fs";
import { chmod, mkdir, open, rm, stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { type ByteRange, type FileStore, StoreFullError } from "./store.ts";

const FULL = ["ENOSPC", "EDQUOT", "EFBIG"];

export class DiskStore implements FileStore {
  readonly place: string;

  constructor(folder: string) {
    this.place = folder;
  }

  async prepare(): Promise<void> {
    await mkdir(this.place, { recursive: true, mode: 0o700 });
    await chmod(this.place, 0o700);
  }

  async freeBytes(): Promise<number> {
    const { bavail, bsize } = await statfs(this.place);
    return bavail * bsize;
  }

  async size(name: string): Promise<number> {
    try {
      return (await stat(this.#pathOf(name))).size;
    } catch (error) {
      if (codeOf(error) === "ENOENT") return 0;
      throw error;
    }
  }

  async append(name: string, offset: number, bytes: AsyncIterable<Uint8Array>): Promise<void> {
    const path = this.#pathOf(name);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const file = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
    try {
      let at = offset;
      for await (const chunk of bytes) {
        for (let written = 0; written < chunk.length; ) {
          const { bytesWritten } = await file.write(chunk, written, chunk.length - written, at);
          written += bytesWritten;
          at += bytesWritten;
        }
      }
    } catch (error) {
      if (FULL.includes(codeOf(error))) throw new StoreFullError(`${this.place} is full`);
      throw error;
    } finally {
      await file.close();
    }
  }

  async seal(name: string): Promise<void> {
    // Not read-only: fsync needs no permission to write, but some file systems want it.
    const file = await open(this.#pathOf(name), constants.O_RDWR | constants.O_CREAT, 0o600);
    try {
      await file.sync();
    } catch (error) {
      if (FULL.includes(codeOf(error))) throw new StoreFullError(`${this.place} is full`);
      throw error;
    } finally {
      await file.close();
    }
    const folder = await open(dirname(this.#pathOf(name)));
    await folder.sync().finally(() => folder.close());
  }

  async read(name: string, range?: ByteRange): Promise<Readable> {
    const file = await open(this.#pathOf(name), constants.O_RDONLY | constants.O_NOFOLLOW);
    return createReadStream("", { fd: file, ...(range && { start: range.first, end: range.last }) });
  }

  async remove(name: string): Promise<void> {
    await rm(this.#pathOf(name), { force: true });
  }

  /** The names are random ids of the broker. Few folders hold many files each. */
  #pathOf(name: string): string {
    return join(this.place, name.slice(-2), name);
  }
}

const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
