/**
 * Files in a folder, one for each content. Several gateways may use it at once. Limit: gateways on other machines need the
 * same folder, mounted.
 */
import { constants, createReadStream, type Stats } from "node:fs";
import { chmod, type FileHandle, mkdir, open, readdir, rm, stat, statfs, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { UPLOAD_ID } from "../../schema/file.ts";
import { storageUnavailable } from "./file-errors.ts";
import {
  type ByteRange,
  type FileStore,
  type StoredContent,
  StoreFullError,
  StoreSetupError,
} from "./store.ts";

const FULL = ["ENOSPC", "EDQUOT", "EFBIG"];
const FOLDER_LENGTH = 2;
const PROBE = ".probe";

export class DiskStore implements FileStore {
  readonly place: string;

  constructor(folder: string) {
    this.place = folder;
  }

  async prepare(): Promise<void> {
    try {
      // The folder of an operator keeps its mode.
      if ((await mkdir(this.place, { recursive: true, mode: 0o700 })) !== undefined)
        await chmod(this.place, 0o700);
      const probe = join(this.place, `${PROBE}-${process.pid}`);
      await writeFile(probe, "", { mode: 0o600 });
      await rm(probe);
    } catch (error) {
      throw new StoreSetupError(
        `The files cannot be stored in ${this.place}: ${codeOf(error) || error}. ${REMEDY}`,
      );
    }
  }

  freeBytes(): Promise<number> {
    return this.#guard(async () => {
      const { bavail, bsize } = await statfs(this.place);
      return bavail * bsize;
    });
  }

  async size(name: string): Promise<number> {
    return this.#guard(async () => (await statOf(this.#pathOf(name)))?.size ?? 0);
  }

  async append(name: string, offset: number, bytes: AsyncIterable<Uint8Array>): Promise<void> {
    const file = await this.#guard(() => this.#openToWrite(name));
    try {
      let at = offset;
      for await (const chunk of bytes) {
        await this.#guard(() => writeAll(file, chunk, at));
        at += chunk.length;
      }
    } finally {
      await file.close();
    }
  }

  async seal(name: string): Promise<void> {
    await this.#guard(async () => {
      // An empty content has no file yet.
      const file = await this.#openToWrite(name);
      await file.sync().finally(() => file.close());
      const folder = await open(dirname(this.#pathOf(name)));
      await folder.sync().finally(() => folder.close());
    });
  }

  async read(name: string, range?: ByteRange): Promise<Readable> {
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW;
    const file = await this.#guard(() => open(this.#pathOf(name), flags));
    return createReadStream("", { fd: file, ...(range && { start: range.first, end: range.last }) });
  }

  async remove(name: string): Promise<void> {
    await this.#guard(() => rm(this.#pathOf(name), { force: true }));
  }

  async *contents(): AsyncGenerator<StoredContent> {
    for (const folder of await this.#guard(() => namesIn(this.place))) {
      if (folder.length !== FOLDER_LENGTH) continue;
      for (const name of await this.#guard(() => namesIn(join(this.place, folder)))) {
        const path = this.#pathOf(name);
        // Other files in the operator's folder are none of the broker's.
        if (!UPLOAD_ID.test(name) || dirname(path) !== join(this.place, folder)) continue;
        const found = await this.#guard(() => statOf(path));
        if (found?.isFile()) yield { name, size: found.size, changedAt: found.mtimeMs };
      }
    }
  }

  async #openToWrite(name: string): Promise<FileHandle> {
    const path = this.#pathOf(name);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    return open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  }

  /** An error of the file system must not be taken for one of Redis, whose connections have the same codes. */
  async #guard<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (FULL.includes(codeOf(error))) throw new StoreFullError(`${this.place} is full`);
      throw storageUnavailable(error);
    }
  }

  /** The names are random ids of the broker. Few folders hold many files each. */
  #pathOf(name: string): string {
    return join(this.place, name.slice(-FOLDER_LENGTH), name);
  }
}

const REMEDY = "Check that ERRAND_FILES is a folder in which the broker may write.";

async function writeAll(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, written, bytes.length - written, position + written);
    written += bytesWritten;
  }
}

const statOf = (path: string): Promise<Stats | null> => stat(path).catch(unlessMissing(null));

const namesIn = (folder: string): Promise<string[]> =>
  readdir(folder).catch(unlessMissing<string[]>([], "ENOTDIR"));

/** Nothing is there, or something else than was looked for. */
const unlessMissing =
  <T>(instead: T, other = "") =>
  (error: unknown): T => {
    if (codeOf(error) === "ENOENT" || codeOf(error) === other) return instead;
    throw error;
  };

const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
