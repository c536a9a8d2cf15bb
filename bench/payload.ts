/**
 * The payloads: a task of a given size with the time when it was sent, and a reply of the same size.
 * Limit: ASCII.
 */
import { clock } from "./tally.ts";

/** The caller waits for the reply. */
export const WAIT = { prefer: "wait=60" };
const STAMP_WIDTH = 18;

export const filler = (bytes: number): string =>
  "the quick brown fox jumps over it ".repeat(Math.ceil(bytes / 34)).slice(0, bytes);

/** A delegation for an agent, as JSON; `rest` is filler, shortened by the size of the time stamp. */
export function taskJson(agent: string, rest: string): string {
  return `{"target":"${agent}","task":"${stamp()}${rest}"}`;
}

export const taskFiller = (bytes: number): string => filler(Math.max(0, bytes - STAMP_WIDTH));

function stamp(): string {
  return `~${clock()
    .toFixed(3)
    .padStart(STAMP_WIDTH - 2, "0")}~`;
}

/** Milliseconds since the task that follows `from` was sent. */
export function ageIn(text: string, from: number): number {
  const at = text.indexOf("~", from) + 1;
  return clock() - Number(text.slice(at, at + STAMP_WIDTH - 2));
}
