/**
 * The file of a backup: a header of fixed size, then the keys. The header has a checksum of both, so a file that was cut
 * or altered is recognized. Limit: the checksum is no signature.
 */
import { createHash, type Hash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import * as z from "zod";
import { isOwnKey, keys } from "../redis/keys.ts";
import { type Cursor, parseItems, Truncated } from "./cursor.ts";
import type { RdbEntry } from "./rdb.ts";

const FORMAT = 1;
const HEADER_BYTES = 1024;
/** For each key: the lengths of key and value, and when it expires (-1: never). */
const ENTRY_HEAD_BYTES = 16;

const headerSchema = z.strictObject({
  errand_backup: z.literal(FORMAT),
  errand_version: z.string(),
  created_at: z.string(),
  /** The product and version of the server. */
  server: z.string(),
  /** The version of the values' form; an older server cannot restore them. */
  rdb_version: z.int(),
  database: z.int(),
  keys: z.int(),
  delegations: z.int(),
  /** The files whose rows it has, without their contents; absent: none. */
  files: z.int().optional(),
  bytes: z.int(),
  sha256: z.string(),
});
export type BackupHeader = z.output<typeof headerSchema>;
export type BackupEntry = Omit<RdbEntry, "database">;

/** The file is not a backup, or not the whole one that was written. */
export class BackupFileError extends Error {
  override readonly name = "BackupFileError";
}

/** A write failed, for example because the disk is full. */
export class BackupWriteError extends Error {
  override readonly name = "BackupWriteError";
}

/** Adds the header, with an empty `sha256`, to the hash of the keys, and returns the digest. */
const finalHash = (hash: Hash, header: BackupHeader): string =>
  hash.update(JSON.stringify({ ...header, sha256: "" })).digest("hex");

/** Writes the keys, then the header in front of them; closes the file when all is on disk. */
export class BackupWriter {
  readonly #file: FileHandle;
  readonly #hash = createHash("sha256");
  #bytes = 0;

  constructor(file: FileHandle) {
    this.#file = file;
  }

  get bytes(): number {
    return this.#bytes;
  }

  async add(entries: readonly BackupEntry[]): Promise<void> {
    const all = Buffer.concat(
      entries.flatMap(({ key, value, expiresAtMs }) => {
        const head = Buffer.alloc(ENTRY_HEAD_BYTES);
        head.writeUInt32BE(key.length, 0);
        head.writeUInt32BE(value.length, 4);
        head.writeDoubleBE(expiresAtMs ?? -1, 8);
        return [head, key, value];
      }),
    );
    this.#hash.update(all);
    await this.#write(all, HEADER_BYTES + this.#bytes);
    this.#bytes += all.length;
  }

  async finish(rest: Omit<BackupHeader, "errand_backup" | "bytes" | "sha256">): Promise<BackupHeader> {
    const bare = headerSchema.parse({ errand_backup: FORMAT, ...rest, bytes: this.#bytes, sha256: "" });
    const header = { ...bare, sha256: finalHash(this.#hash, bare) };
    const text = Buffer.alloc(HEADER_BYTES, " ");
    text.write(JSON.stringify(header));
    text.write("\n", HEADER_BYTES - 1);
    await this.#write(text, 0);
    await written(this.#file.sync());
    const { size } = await written(this.#file.stat());
    const expected = HEADER_BYTES + this.#bytes;
    if (size !== expected) throw new BackupWriteError(`it has ${size} bytes instead of ${expected}`);
    // Some file systems report a failed write only now.
    await written(this.#file.close());
    return header;
  }

  /** A write to a full disk may write a part and report no error; the write of the rest reports it. */
  async #write(bytes: Buffer, position: number): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      const rest = this.#file.write(bytes, done, bytes.length - done, position + done);
      const { bytesWritten } = await written(rest);
      if (bytesWritten === 0) throw new BackupWriteError("nothing more could be written to it");
      done += bytesWritten;
    }
  }
}

const written = <T>(work: Promise<T>): Promise<T> =>
  work.catch((error: unknown) => {
    throw new BackupWriteError(error instanceof Error ? error.message : "unknown", { cause: error });
  });

/** An open file whose every byte was checked. */
export interface OpenBackup {
  readonly header: BackupHeader;
  /** The value of the layout, in the form of DUMP without its end. */
  readonly layout: Buffer | null;
  readonly entries: () => AsyncGenerator<BackupEntry>;
  readonly close: () => Promise<void>;
}

/** Reads the whole file once, and throws {@link BackupFileError} unless it is complete and unchanged. */
export async function openBackup(path: string, signal: AbortSignal): Promise<OpenBackup> {
  const file = await open(path, "r");
  try {
    const header = await readHeader(file);
    const hash = createHash("sha256");
    let count = 0;
    let layout: Buffer | null = null;
    for await (const { key, value } of entriesOf(file, signal, (bytes) => hash.update(bytes))) {
      count += 1;
      if (key.toString("latin1") === keys.layout) layout = value;
    }
    if (count !== header.keys || finalHash(hash, header) !== header.sha256) {
      throw new BackupFileError("the file was altered: its checksum is wrong");
    }
    return { header, layout, entries: () => entriesOf(file, signal), close: () => file.close() };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function readHeader(file: FileHandle): Promise<BackupHeader> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES, 0);
  const text = buffer.toString("utf8", 0, bytesRead);
  const format = /^\{"errand_backup":(\d+),/.exec(text)?.[1];
  if (format === undefined) throw new BackupFileError("the file is not a backup of Errand");
  if (format !== String(FORMAT)) {
    throw new BackupFileError(`the file has format ${format}, and this version of Errand reads ${FORMAT}`);
  }
  let header: BackupHeader;
  try {
    header = headerSchema.parse(JSON.parse(text));
  } catch {
    throw new BackupFileError("the file was altered: its header is damaged");
  }
  const { size } = await file.stat();
  const expected = HEADER_BYTES + header.bytes;
  if (size !== expected) throw new BackupFileError(`the file has ${size} bytes instead of ${expected}`);
  return header;
}

async function* entriesOf(
  file: FileHandle,
  signal: AbortSignal,
  onBytes?: (bytes: Buffer) => void,
): AsyncGenerator<BackupEntry> {
  const chunks = file.createReadStream({
    start: HEADER_BYTES,
    autoClose: false,
    highWaterMark: 1_048_576,
    signal,
  });
  try {
    yield* parseItems(chunks, readEntry, onBytes);
  } catch (error) {
    throw error instanceof Truncated ? new BackupFileError("the file was altered: it ends too early") : error;
  }
}

function readEntry(cursor: Cursor): BackupEntry {
  const head = cursor.take(ENTRY_HEAD_BYTES);
  const expires = head.readDoubleBE(8);
  const key = Buffer.from(cursor.take(head.readUInt32BE(0)));
  const value = Buffer.from(cursor.take(head.readUInt32BE(4)));
  // The checksum is no signature, and the Redis of a restore may have the keys of others, too.
  if (!isOwnKey(key.toString("latin1"))) {
    throw new BackupFileError("the file was altered: it has a key that is not Errand's");
  }
  if (!Number.isSafeInteger(expires))
    throw new BackupFileError("the file was altered: the time at which a key expires is not one");
  return { key, value, expiresAtMs: expires < 0 ? null : expires };
}
