/**
 * A stored event as the gateways read it, and its JSON for the wire. Limit: `more` is JSON text from the script; it is
 * spliced in, not parsed.
 *
 *     1718000000250-0  e  "DELEGATION_STATUS\ndlg_0_…\n2\n1718000000250\nworking\nleased\nscout\ncaller:alice\n…"
 *     → {"id":"1718000000250-0","type":"DELEGATION_STATUS","delegation_id":"dlg_0_…","seq":2,…,"status":"leased",…}
 */
import * as z from "zod";
import { EVENT_LINE_NAMES, type EventLine } from "../lifecycle/fields.ts";
import { toInstant } from "../schema/values.ts";

/** The parsed lines of a stored event; lifecycle/fields.ts has their layout. */
export interface Entry extends Readonly<Record<Exclude<EventLine, "seq" | "at" | "created_at">, string>> {
  /** Stream id, `<ms>-<n>`; unique and increasing within a shard. */
  readonly id: string;
  readonly shard: number;
  readonly seq: number;
  readonly at: number;
  /** When the delegation was created, ms. */
  readonly created_at: number;
  /** Only in the live feed: a parked poll took the event's ticket in the same step, so no poll needs to be woken for it. */
  readonly matched: boolean;
  /** Only in the live feed: the worker for which the event's ticket is kept. */
  readonly kept_for: string | undefined;
}

/** Parses a stream entry: `e` and the event's text, then `m` or `k` for its ticket (lifecycle/lua/event.lua). */
export function toEntry(shard: number, id: string, [, text = "", hint, value]: readonly string[]): Entry {
  const lines = text.split("\n");
  const line = (name: EventLine) => lines[EVENT_LINE_NAMES.indexOf(name)] ?? "";
  return {
    id,
    shard,
    type: line("type"),
    delegation_id: line("delegation_id"),
    seq: Number(line("seq")),
    at: Number(line("at")),
    state: line("state"),
    status: line("status"),
    target: line("target"),
    delegator: line("delegator"),
    context_id: line("context_id"),
    created_at: Number(line("created_at")),
    more: line("more"),
    refs: line("refs"),
    matched: hint === "m",
    kept_for: hint === "k" ? value : undefined,
  };
}

const ROOT = /^"root_id":"(dlg_[0-9a-z_]+)"/;

/** The root of the tree that the event's delegation is in; the script writes it as the first member. */
export const rootOf = ({ more, delegation_id }: Pick<Entry, "more" | "delegation_id">): string =>
  ROOT.exec(more)?.[1] ?? delegation_id;

/** The approximate size of an event: the characters of its members, and the bytes of the bodies that it refers to. */
export const sizeOf = ({ more, refs }: Pick<Entry, "more" | "refs">): number =>
  more.length + (refs === "" ? 0 : Number.parseInt(refs, 10));

/** The event as JSON; `cursor` is the id by which a reader resumes. */
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
  // Ids of the same length, which are the usual case, compare as text.
  if (a.length === b.length && a.indexOf("-") === b.indexOf("-")) return a < b ? -1 : a > b ? 1 : 0;
  const [aMs = "0", aSeq = "0"] = a.split("-");
  const [bMs = "0", bSeq = "0"] = b.split("-");
  return Number(aMs) - Number(bMs) || Number(aSeq) - Number(bSeq);
}

const approvedSchema = z.object({ auto: z.literal(true) });

/** Whether the event is a question that was approved in advance: nobody needs to answer it. */
export const isApprovedQuestion = ({ status, more }: Pick<Entry, "status" | "more">): boolean =>
  status === "interrupted" && approvedSchema.safeParse(JSON.parse(`{${more}}`)).success;
