/** The two basic forms of an RDB file: lengths, and strings, which may be integers or compressed (LZF). */
import type { Cursor } from "./cursor.ts";

/** The data is not what this version of Errand can read. */
export class RdbError extends Error {
  override readonly name = "RdbError";
}

/** The special forms of a string. */
const INT8 = 0;
const INT16 = 1;
const INT32 = 2;
const LZF = 3;

/** A length, or the form of a special string. */
function lengthOrForm(cursor: Cursor): { readonly length: number } | { readonly form: number } {
  const first = cursor.byte();
  const low = first & 63;
  switch (first >> 6) {
    case 0:
      return { length: low };
    case 1:
      return { length: (low << 8) | cursor.byte() };
    case 2:
      if (first === 0x80) return { length: cursor.take(4).readUInt32BE() };
      if (first === 0x81) return { length: Number(cursor.take(8).readBigUInt64BE()) };
      throw new RdbError(`a length begins with ${first}`);
    default:
      return { form: low };
  }
}

export function readLength(cursor: Cursor): number {
  const read = lengthOrForm(cursor);
  if ("length" in read) return read.length;
  throw new RdbError("the snapshot has a special string where a length belongs");
}

export function skipString(cursor: Cursor): void {
  const read = lengthOrForm(cursor);
  if ("length" in read) cursor.skip(read.length);
  else if (read.form === INT8) cursor.skip(1);
  else if (read.form === INT16) cursor.skip(2);
  else if (read.form === INT32) cursor.skip(4);
  else if (read.form === LZF) {
    const compressed = readLength(cursor);
    readLength(cursor);
    cursor.skip(compressed);
  } else throw new RdbError(`a string has an unknown form, ${read.form}`);
}

export function readString(cursor: Cursor): Buffer {
  const read = lengthOrForm(cursor);
  // A copy, because the cursor's bytes are reused.
  if ("length" in read) return Buffer.from(cursor.take(read.length));
  if (read.form === INT8) return Buffer.from(String(cursor.take(1).readInt8()));
  if (read.form === INT16) return Buffer.from(String(cursor.take(2).readInt16LE()));
  if (read.form === INT32) return Buffer.from(String(cursor.take(4).readInt32LE()));
  if (read.form !== LZF) throw new RdbError(`a string has an unknown form, ${read.form}`);
  const compressed = readLength(cursor);
  const length = readLength(cursor);
  return decompress(cursor.take(compressed), length);
}

/** LZF: a control byte below 32 precedes literal bytes; any other begins a reference to earlier output. */
function decompress(input: Buffer, length: number): Buffer {
  const output = Buffer.alloc(length);
  let at = 0;
  let end = 0;
  const next = () => {
    const byte = input[at];
    if (byte === undefined) throw new RdbError("a compressed string is damaged");
    at += 1;
    return byte;
  };
  while (at < input.length) {
    const control = next();
    if (control < 32) {
      end += input.copy(output, end, at, at + control + 1);
      at += control + 1;
      continue;
    }
    let run = control >> 5;
    if (run === 7) run += next();
    let from = end - ((control & 31) << 8) - next() - 1;
    if (from < 0) throw new RdbError("a compressed string is damaged");
    // Byte by byte, because the reference may overlap what it writes.
    for (const stop = Math.min(length, end + run + 2); end < stop; end += 1, from += 1)
      output[end] = output[from] ?? 0;
  }
  if (end !== length) throw new RdbError("a compressed string is damaged");
  return output;
}
