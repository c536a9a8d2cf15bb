/** Reads the keys of an RDB file, the form in which Redis sends a snapshot of itself. */
import { Crc64 } from "./crc64.ts";
import { type Cursor, parseItems, Truncated } from "./cursor.ts";
import { RdbError, readLength, readString, skipString } from "./rdb-strings.ts";
import { skipModuleData, skipValue } from "./rdb-values.ts";

export interface RdbEntry {
  readonly database: number;
  readonly key: Buffer;
  /** Unix time in milliseconds; null for a key that does not expire. */
  readonly expiresAtMs: number | null;
  /** A byte for the type, then the value: what DUMP returns, without its last ten bytes. */
  readonly value: Buffer;
}

export interface RdbSnapshot {
  /** The version of the format; a server that knows only older ones cannot restore it. */
  readonly version: number;
  readonly entries: AsyncIterable<RdbEntry>;
}

const HEADER_BYTES = 9;
const NO_CHECKSUM = Buffer.alloc(8);

const CODES = {
  functions: 0xf5,
  moduleData: 0xf7,
  idle: 0xf8,
  frequency: 0xf9,
  auxiliary: 0xfa,
  sizes: 0xfb,
  expiresMs: 0xfc,
  expires: 0xfd,
  database: 0xfe,
  end: 0xff,
} as const;
/** Codes from this one on do not name a type. */
const LOWEST_CODE = 0xf0;

type Item =
  | { readonly kind: "version"; readonly version: number }
  | { readonly kind: "database"; readonly database: number }
  | { readonly kind: "expires"; readonly atMs: number }
  | { readonly kind: "entry"; readonly key: Buffer; readonly value: Buffer }
  | { readonly kind: "other" }
  | { readonly kind: "end" }
  | { readonly kind: "checksum"; readonly checksum: Buffer };

/** The rest of the chunks is not read after the end. Throws {@link RdbError} for anything but a complete snapshot. */
export async function readRdb(chunks: AsyncIterable<Uint8Array>): Promise<RdbSnapshot> {
  const items = itemsOf(chunks);
  const first = await items.next();
  if (first.done || first.value.kind !== "version") throw new RdbError("the snapshot is empty");
  return { version: first.value.version, entries: entriesOf(items) };
}

async function* entriesOf(items: AsyncGenerator<Item>): AsyncGenerator<RdbEntry> {
  let database = 0;
  let expiresAtMs: number | null = null;
  for await (const item of items) {
    if (item.kind === "database") database = item.database;
    else if (item.kind === "expires") expiresAtMs = item.atMs;
    else if (item.kind === "entry") {
      yield { database, key: item.key, expiresAtMs, value: item.value };
      expiresAtMs = null;
    } else if (item.kind === "checksum") return;
  }
  throw new RdbError("the snapshot is incomplete");
}

async function* itemsOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Item> {
  const crc = new Crc64();
  let next: (cursor: Cursor) => Item = readVersion;
  const parse = (cursor: Cursor) => next(cursor);
  const check = (bytes: Buffer) => {
    if (next !== readChecksum) crc.update(bytes);
  };
  try {
    for await (const item of parseItems(chunks, parse, check)) {
      if (item.kind === "version") next = readItem;
      if (item.kind === "end") next = readChecksum;
      if (item.kind === "checksum" && !isRight(item.checksum, crc.digest()))
        throw new RdbError("the checksum of the snapshot is wrong");
      yield item;
    }
  } catch (error) {
    throw error instanceof Truncated ? new RdbError("the snapshot is incomplete") : error;
  }
}

const isRight = (stored: Buffer, computed: Buffer): boolean =>
  stored.equals(NO_CHECKSUM) || stored.equals(computed);

function readVersion(cursor: Cursor): Item {
  const text = cursor.take(HEADER_BYTES).toString("latin1");
  const version = /^(?:REDIS|VALKEY)(\d{3,4})$/.exec(text)?.[1];
  if (version === undefined) throw new RdbError("the server did not send a snapshot");
  return { kind: "version", version: Number(version) };
}

const readChecksum = (cursor: Cursor): Item => ({
  kind: "checksum",
  checksum: Buffer.from(cursor.take(NO_CHECKSUM.length)),
});

function readItem(cursor: Cursor): Item {
  const code = cursor.byte();
  switch (code) {
    case CODES.end:
      return { kind: "end" };
    case CODES.database:
      return { kind: "database", database: readLength(cursor) };
    case CODES.expiresMs:
      return { kind: "expires", atMs: Number(cursor.take(8).readBigInt64LE()) };
    case CODES.expires:
      return { kind: "expires", atMs: 1000 * cursor.take(4).readInt32LE() };
    case CODES.sizes:
      readLength(cursor);
      readLength(cursor);
      return { kind: "other" };
    case CODES.auxiliary:
      skipString(cursor);
      skipString(cursor);
      return { kind: "other" };
    case CODES.idle:
      readLength(cursor);
      return { kind: "other" };
    case CODES.frequency:
      cursor.skip(1);
      return { kind: "other" };
    case CODES.functions:
      skipString(cursor);
      return { kind: "other" };
    case CODES.moduleData:
      skipModuleData(cursor);
      return { kind: "other" };
    default:
      return readEntry(cursor, code);
  }
}

function readEntry(cursor: Cursor, type: number): Item {
  if (type >= LOWEST_CODE) throw new RdbError(`the snapshot has an unknown part (${type})`);
  const key = readString(cursor);
  const from = cursor.at;
  skipValue(cursor, type, key.toString());
  return { kind: "entry", key, value: Buffer.concat([Buffer.of(type), cursor.between(from, cursor.at)]) };
}
