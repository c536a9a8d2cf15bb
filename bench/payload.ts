/**
 * What goes over the wire: a task of so many bytes that carries when it was sent, and a reply of as many.
 * Limit: ASCII.
 */
import { clock } from "./tally.ts";

/** A header line: the caller waits for the reply. */
export const WAIT = "prefer: wait=60\r\n";
const STAMP_WIDTH = 18;

export const filler = (bytes: number): string =>
  "the quick brown fox jumps over it ".repeat(Math.ceil(bytes / 34)).slice(0, bytes);

/** A delegation for an agent, as JSON; `rest` is filler that leaves room for the stamp. */
export function taskJson(agent: string, rest: string): string {
  return `{"target":"${agent}","task":"${stamp()}${rest}"}`;
}

export const taskFiller = (bytes: number): string => filler(Math.max(0, bytes - STAMP_WIDTH));

function stamp(): string {
  return `~${clock()
    .toFixed(3)
    .padStart(STAMP_WIDTH - 2, "0")}~`;
}

/** How long ago the task that stands behind `from` was sent, ms. */
export function ageIn(text: string, from: number): number {
  const at = text.indexOf("~", from) + 1;
  return clock() - Number(text.slice(at, at + STAMP_WIDTH - 2));
}
