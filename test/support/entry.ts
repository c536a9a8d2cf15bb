/** What the writer would have put into a stream, for tests that put it there themselves. */
import type { Entry } from "../../src/events/entry.ts";

/** The field and its value, as XADD takes them. */
export function entryFields(entry: Partial<Omit<Entry, "id" | "shard">> = {}): [string, string] {
  const { type = "DELEGATION_STATUS", delegation_id = "", seq = 0, at = 0, state = "", status = "" } = entry;
  const { target = "", delegator = "", context_id = "", created_at = 0, more = "" } = entry;
  const lines = [
    type,
    delegation_id,
    seq,
    at,
    state,
    status,
    target,
    delegator,
    context_id,
    created_at,
    more,
  ];
  return ["e", lines.join("\n")];
}
