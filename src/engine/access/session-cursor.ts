/** The order of a list of sessions, and its cursor: by expiry, then by id, both descending. */
import { invalidCursor } from "../list-cursor.ts";

export interface Row {
  readonly id: string;
  readonly expires_at: number;
}

/** From the answer of ZRANGE WITHSCORES. */
export const toRows = (flat: readonly string[]): Row[] =>
  flat.flatMap((id, index) => (index % 2 === 0 ? [{ id, expires_at: Number(flat[index + 1]) }] : []));

export const isAfter = (row: Row, from: Row): boolean =>
  row.expires_at < from.expires_at || (row.expires_at === from.expires_at && row.id < from.id);

export const toCursor = ({ id, expires_at }: Row): string => `${id}_${expires_at}`;

export function parseCursor(cursor: string): Row {
  const match = /^(ses_[0-9a-z]{1,16})_(\d{1,16})$/.exec(cursor);
  if (match) return { id: match[1] ?? "", expires_at: Number(match[2]) };
  throw invalidCursor();
}
