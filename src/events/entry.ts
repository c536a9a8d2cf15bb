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
}

export function toEntry(shard: number, id: string, flat: readonly string[]): Entry {
  const field = new Map<string, string>();
  for (let i = 0; i + 1 < flat.length; i += 2) field.set(flat[i] ?? "", flat[i + 1] ?? "");
  const text = (name: string) => field.get(name) ?? "";
  return {
    id,
    shard,
    type: text("type"),
    delegation_id: text("delegation_id"),
    seq: Number(text("seq")),
    state: text("state"),
    status: text("status"),
    target: text("target"),
    delegator: text("delegator"),
    context_id: text("context_id"),
    at: Number(text("at")),
    created_at: Number(text("created_at")),
    more: text("more"),
  };
}

/** The event of contract §6; `cursor` is the id that a reader resumes by. */
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
  const [aMs = "0", aSeq = "0"] = a.split("-");
  const [bMs = "0", bSeq = "0"] = b.split("-");
  return Number(aMs) - Number(bMs) || Number(aSeq) - Number(bSeq);
}
