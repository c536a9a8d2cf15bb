/**
 * A stream entry as the gateway handles it, and its JSON for the wire. Limit: `more` is JSON text that the
 * writer made; it is spliced in, not parsed.
 */
import { toInstant } from "../schema/values.ts";

export interface Entry {
  /** Stream id, `<ms>-<n>`; unique and growing within a shard. */
  readonly id: string;
  readonly shard: number;
  readonly type: string;
  readonly delegation_id: string;
  readonly seq: number;
  readonly state: string;
  /** Of what kind a change is; empty for an end. */
  readonly status: string;
  readonly target: string;
  readonly delegator: string;
  readonly context_id: string;
  readonly at: number;
  /** When the delegation was made, ms. */
  readonly created_at: number;
  readonly more: string;
  /** References to the bodies of its artifacts, as transition.lua wrote them; empty: none, or they are in `more`. */
  readonly refs: string;
}

/** Of a stream's entry: one field, whose lines are in the order of transition.lua. JSON text has no line breaks. */
export function toEntry(shard: number, id: string, [, text = ""]: readonly string[]): Entry {
  const lines = text.split("\n");
  const line = (at: number) => lines[at] ?? "";
  return {
    id,
    shard,
    type: line(0),
    delegation_id: line(1),
    seq: Number(line(2)),
    at: Number(line(3)),
    state: line(4),
    status: line(5),
    target: line(6),
    delegator: line(7),
    context_id: line(8),
    created_at: Number(line(9)),
    more: line(10),
    refs: line(11),
  };
}

/** The characters of the event without its envelope, and the bytes of the bodies that it refers to. */
export const sizeOf = ({ more, refs }: Pick<Entry, "more" | "refs">): number =>
  more.length + (refs === "" ? 0 : Number.parseInt(refs, 10));

/** The event; `cursor` is the id that a reader resumes by. */
export function toEventJson(entry: Entry, cursor: string): string {
  const { type, delegation_id, seq, state, status, target, delegator, context_id } = entry;
  const at = toInstant(entry.at);
  const envelope = {
    ...{ id: cursor, type, delegation_id, seq, at, state, target, delegator, context_id },
    ...(status !== "" && { status }),
  };
  const text = JSON.stringify(envelope);
  return entry.more === "" ? text : `${text.slice(0, -1)},${entry.more}}`;
}

/** Order of two stream ids: negative, zero or positive. */
export function compareIds(a: string, b: string): number {
  // Nearly always of the same length, and then in the order of their texts.
  if (a.length === b.length && a.indexOf("-") === b.indexOf("-")) return a < b ? -1 : a > b ? 1 : 0;
  const [aMs = "0", aSeq = "0"] = a.split("-");
  const [bMs = "0", bSeq = "0"] = b.split("-");
  return Number(aMs) - Number(bMs) || Number(aSeq) - Number(bSeq);
}
