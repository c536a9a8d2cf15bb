/** Reads events. What a newer broker adds is an `UNKNOWN` event, so that a reader misses nothing. */
import * as z from "zod";
import { isTerminal } from "../schema/delegation.ts";
import { type StreamEvent, streamEventSchema, unknownEventSchema } from "../schema/event.ts";
import { issuesOf } from "../schema/issues.ts";
import { type ErrandApiError, localError } from "./errors.ts";
import { parseLenient } from "./lenient.ts";

const objectSchema = z.record(z.string(), z.unknown());

/** Null: it is about no delegation, and of a type that this version does not know. */
export function toEvent(data: unknown): StreamEvent | null {
  const known = parseLenient(streamEventSchema, data);
  if (known.success) return known.data;
  const sent = objectSchema.safeParse(data).data ?? {};
  const unknown = unknownEventSchema.safeParse({ ...sent, type: "UNKNOWN", event: sent });
  if (unknown.success) return unknown.data;
  const { type } = sent;
  if (typeof type === "string" && type !== "RESET" && !type.startsWith("DELEGATION_")) return null;
  throw unreadable(issuesOf(known.error, { whole: "event" }).text);
}

export function unreadable(why: string): ErrandApiError {
  return localError({
    code: "invalid_response",
    category: "CONFIG",
    detail: `an event could not be read (${why})`,
    recovery: "Check that the URL is an Errand broker of this version.",
  });
}

/** Whether nothing follows it in its delegation. */
export function isLast(event: StreamEvent): boolean {
  if (event.type === "RESET") return false;
  return isTerminal(event.type === "DELEGATION_SNAPSHOT" ? event.delegation.state : event.state);
}
