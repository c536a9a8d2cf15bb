/**
 * The pieces of a content, each an object that is written once. A request that was thought dead may still write a piece at
 * an offset where others continued, so the content is the chain of pieces that reaches furthest. A late piece never makes it
 * shorter, and of two chains that reach as far, the older pieces count.
 */
import { randomId } from "../../../redis/shards.ts";
import type { StoredObject } from "./object-list.ts";

export interface Piece {
  readonly key: string;
  readonly offset: number;
  readonly size: number;
}

const OFFSET_DIGITS = 16;
const AGE_DIGITS = 9;
const KEY = /\/(\d{16})-([0-9a-z]{9})-[0-9a-z]+$/;

/** `folder` ends with a slash. Keys of one offset are in the order of their age. */
export const pieceKey = (folder: string, offset: number, now = Date.now()): string =>
  [
    `${folder}${String(offset).padStart(OFFSET_DIGITS, "0")}`,
    now.toString(36).padStart(AGE_DIGITS, "0"),
    randomId(8),
  ].join("-");

/** When the piece was written, ms; of another object, never. */
export function writtenAt(key: string): number {
  const [, , age] = KEY.exec(key) ?? [];
  return age === undefined ? Number.POSITIVE_INFINITY : Number.parseInt(age, 36);
}

export function chainOf(objects: readonly StoredObject[]): readonly Piece[] {
  const found = new Map<number, { readonly piece: Piece; readonly end: number }>();
  // From the end, and the newest first, so that all that may follow a piece is known.
  const newestFirst = [...objects].sort((one, other) => (one.key < other.key ? 1 : -1));
  for (const { key, size } of newestFirst) {
    const [, digits] = KEY.exec(key) ?? [];
    if (digits === undefined || size === 0) continue;
    const offset = Number(digits);
    const end = found.get(offset + size)?.end ?? offset + size;
    if (end >= (found.get(offset)?.end ?? 0)) found.set(offset, { piece: { key, offset, size }, end });
  }
  const chain: Piece[] = [];
  for (let next = found.get(0); next !== undefined; next = found.get(next.piece.offset + next.piece.size))
    chain.push(next.piece);
  return chain;
}

export const endOf = (chain: readonly Piece[]): number => {
  const last = chain.at(-1);
  return last === undefined ? 0 : last.offset + last.size;
};
