/** Cursors of lists. Limit: a cursor names a place, so it stays valid when what was there is gone. */
import { ErrandError } from "../schema/errors.ts";

/** The error for a cursor that the broker did not make. */
export const invalidCursor = (): ErrandError =>
  new ErrandError("invalid_request", "The cursor is not valid.", {
    details: { issues: [{ path: "cursor", reason: "send back next_cursor unchanged" }] },
  });

/** A place in a list that is in the order of creation: when, ms, and which. */
export interface CreatedAt {
  readonly at: number;
  readonly id: string;
}

export const toCursor = ({ at, id }: CreatedAt): string => `${at}_${id}`;

/** `isId`: whether it is an id of the list. */
export function parseCursor(cursor: string, isId: RegExp): CreatedAt {
  const [, at, id = ""] = /^(\d{1,15})_(.+)$/.exec(cursor) ?? [];
  if (at !== undefined && isId.test(id)) return { at: Number(at), id };
  throw invalidCursor();
}
