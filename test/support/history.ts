/**
 * Checks one delegation's whole event stream against the state table. Limit: reads the stored events, not those that
 * a subscriber received.
 */
import { expect } from "vitest";
import { MOVES, type Move } from "../../src/lifecycle/states.ts";
import { isTerminal, type State, stateSchema } from "../../src/schema/delegation.ts";
import { type DelegationEvent, eventSchema } from "../../src/schema/event.ts";
import type { Answer } from "./broker.ts";

const PAGE_EVENTS = 1_000;
/** The broker ends a page before its number of events only if it is larger than this. */
const PAGE_CHARS = 100_000;

/** All of a delegation's events, page by page. */
export async function eventsOf(
  api: { readonly events: (id: string, query: string) => Promise<Pick<Answer, "status" | "body">> },
  id: string,
): Promise<DelegationEvent[]> {
  const events: DelegationEvent[] = [];
  for (let after = "0"; ; ) {
    const { status, body } = await api.events(id, `?after=${after}&limit=${PAGE_EVENTS}`);
    if (status === 204) return events;
    expect(status).toBe(200);
    if (body.events.length === 0) return events;
    for (const event of body.events) events.push(exactly(event));
    if (body.events.length < PAGE_EVENTS && JSON.stringify(body).length < PAGE_CHARS) return events;
    after = body.cursor;
  }
}

/** Parses it, and refuses members that the schema does not have. */
function exactly(event: object): DelegationEvent {
  const parsed = eventSchema.parse(event);
  const unknown = Object.keys(event).filter((name) => !(name in parsed));
  expect(unknown, `members of ${parsed.type} ${"status" in parsed ? parsed.status : ""}`).toEqual([]);
  return parsed;
}

const isLegal = (from: State, event: DelegationEvent): boolean =>
  Object.values(MOVES).some(
    (move: Move) =>
      move.event === event.type &&
      move.from.includes(from) &&
      (move.status === undefined || move.status === event.status) &&
      (move.to.length === 0 ? event.state === from : move.to.includes(event.state)),
  );

/**
 * Numbered from 1 without a gap, one DELEGATION_SENT, every step legal, and nothing after the one final event. One
 * assertion for all, because tests check thousands of histories.
 */
export function checkHistory(events: readonly DelegationEvent[], expected: "finished" | "live"): void {
  const wrong: unknown[] = [];
  const ids = new Set<string>();
  for (const [index, event] of events.entries()) {
    const { type, status, seq, id } = event;
    if (seq !== index + 1) wrong.push(`event ${index + 1} has seq ${seq}`);
    if ((type === "DELEGATION_SENT") !== (index === 0)) wrong.push(`event ${index + 1} is ${type}`);
    ids.add(id);
    const before = events[index - 1];
    // Only legal steps: above all, no lease is granted while another one is live.
    if (before && !isLegal(before.state, event)) wrong.push([before.state, type, status]);
    const isEnd = expected === "finished" && index === events.length - 1;
    if (isTerminal(stateSchema.parse(event.state)) !== isEnd)
      wrong.push(`event ${index + 1} is ${event.state}`);
  }
  if (events.length === 0) wrong.push("no event");
  if (ids.size !== events.length) wrong.push("an id appears twice");
  expect(wrong).toEqual([]);
}
