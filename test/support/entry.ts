/** Stream entries as the writer writes them, for tests that write entries themselves. */
import type { Entry } from "../../src/events/entry.ts";

/** The field and its value for XADD. */
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
