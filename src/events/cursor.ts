/**
 * Cursors: the position of a reader, one stream id for each shard, joined by `.`:
 *
 *     1718000000000-0                     of one delegation, or of a broker with one shard
 *     1718000000000-0.1718000000250-1     two shards: everything after these ids, each in its own stream
 *     0                                   the beginning
 *
 * Limit: opaque to clients; a cursor is valid for one kind of stream.
 */
import type { ShardHistory } from "../redis/shards.ts";
import { ErrandError } from "../schema/errors.ts";

const START = "0-0";
const ID = /^\d{1,16}-\d{1,16}$/;

export type Positions = readonly string[];

export const formatCursor = (positions: Positions): string => positions.join(".");

/**
 * `0` is the beginning. A cursor made with fewer shards gets, for each newer shard, the position at which that shard
 * began.
 */
export function parseCursor(
  cursor: string,
  shards: number,
  earlier: ShardHistory["earlier"] = [],
): Positions {
  if (cursor === "0") return Array.from({ length: shards }, () => START);
  const positions = cursor.split(".");
  for (const [at, { count, until }] of earlier.entries()) {
    const next = earlier[at + 1]?.count ?? shards;
    if (count !== positions.length) continue;
    while (positions.length < next) positions.push(`${until}-0`);
  }
  if (positions.length !== shards || !positions.every((position) => ID.test(position))) {
    throw new ErrandError("invalid_request", "The cursor is not valid for this stream.", {
      details: { issues: [{ path: "after", reason: "send back a cursor of this stream unchanged, or 0" }] },
    });
  }
  return positions;
}

export const isStart = (position: string): boolean => position === START;
