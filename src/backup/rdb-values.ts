/**
 * Finds where a value of an RDB file ends. The bytes of the value, between a byte for its type and a checksum, are what
 * RESTORE takes, so nothing else is decoded. Limit: a type that is not in the table is refused.
 */
import type { Cursor } from "./cursor.ts";
import { RdbError, readLength, skipString } from "./rdb-strings.ts";

type Skip = (cursor: Cursor) => void;

/** A number of items, then the items. */
const many =
  (...item: readonly Skip[]): Skip =>
  (cursor) => {
    for (let left = readLength(cursor); left > 0; left -= 1) for (const skip of item) skip(cursor);
  };

const bytes =
  (length: number): Skip =>
  (cursor) =>
    cursor.skip(length);

const all =
  (...parts: readonly Skip[]): Skip =>
  (cursor) => {
    for (const skip of parts) skip(cursor);
  };

const length: Skip = (cursor) => void readLength(cursor);

/**
 * A score as text, after a byte for its length. The three highest values of that byte mean not a number and the
 * infinities.
 */
const textScore: Skip = (cursor) => {
  const size = cursor.byte();
  if (size < 253) cursor.skip(size);
};

const STREAM_ID_BYTES = 16;
const TIME_BYTES = 8;

/** The three versions of a stream differ in what they store of the stream, of a group and of a consumer. */
const stream = (more: { readonly stream: Skip; readonly group: Skip; readonly consumer: Skip }): Skip =>
  all(
    many(skipString, skipString),
    // The number of entries, and the last id.
    all(length, length, length, more.stream),
    many(
      // The name and the last id of a group.
      all(skipString, length, length, more.group),
      many(bytes(STREAM_ID_BYTES), bytes(TIME_BYTES), length),
      many(skipString, bytes(TIME_BYTES), more.consumer, many(bytes(STREAM_ID_BYTES))),
    ),
  );

const nothing: Skip = () => undefined;
/** The first id, the highest deleted id, the number of entries ever added. */
const streamCounts = all(length, length, length, length, length);

/** A value of a module is a sequence of parts, each with a code for its form. */
const moduleValue: Skip = (cursor) => {
  length(cursor);
  for (;;) {
    const code = readLength(cursor);
    if (code === 0) return;
    const skip = MODULE_PARTS[code];
    if (skip === undefined) throw new RdbError(`a module's value has an unknown part, ${code}`);
    skip(cursor);
  }
};
/** By code: signed and unsigned numbers, float, double, string. */
const MODULE_PARTS: readonly (Skip | undefined)[] = [
  undefined,
  length,
  length,
  bytes(4),
  bytes(8),
  skipString,
];

/** By the number of the type; those without a comment are one string (an intset, a ziplist, a listpack). */
const TYPES: ReadonlyMap<number, Skip> = new Map([
  [0, skipString],
  // List, set.
  [1, many(skipString)],
  [2, many(skipString)],
  // Sorted sets, with scores as text and in binary.
  [3, many(skipString, textScore)],
  [4, many(skipString, skipString)],
  [5, many(skipString, bytes(8))],
  [7, moduleValue],
  [9, skipString],
  [10, skipString],
  [11, skipString],
  [12, skipString],
  [13, skipString],
  // 14: a list of ziplists. 18: a list of nodes, each after its kind.
  [14, many(skipString)],
  [15, stream({ stream: nothing, group: nothing, consumer: nothing })],
  [16, skipString],
  [17, skipString],
  [18, many(length, skipString)],
  [19, stream({ stream: streamCounts, group: length, consumer: nothing })],
  [20, skipString],
  [21, stream({ stream: streamCounts, group: length, consumer: bytes(TIME_BYTES) })],
  // 24 and 25: hashes whose fields expire.
  [24, all(bytes(TIME_BYTES), many(length, skipString, skipString))],
  [25, all(bytes(TIME_BYTES), skipString)],
]);

/** Skips the value of this type. `key` is for the error only. */
export function skipValue(cursor: Cursor, type: number, key: string): void {
  const skip = TYPES.get(type);
  if (skip === undefined) {
    throw new RdbError(`the key ${key} has a type (${type}) that this version of Errand does not know`);
  }
  skip(cursor);
}

/** Data of a module outside the keys. */
export const skipModuleData: Skip = all(moduleValue);
