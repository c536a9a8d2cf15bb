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
    for (const event of body.events) events.push(eventSchema.parse(event));
    if (body.events.length < PAGE_EVENTS && JSON.stringify(body).length < PAGE_CHARS) return events;
    after = body.cursor;
  }
}

const isLegal = (from: State, event: DelegationEvent): boolean =>
  Object.values(MOVES).some(
    (move: Move) =>
      move.event === event.type &&
      move.from.includes(from) &&
      (move.status === undefined || move.status === event.status) &&
      (move.to.length === 0 ? event.state === from : move.to.includes(event.state)),
  );

/** Numbered from 1 without a gap, one DELEGATION_SENT, every step legal, and nothing after the one final event. */
export function checkHistory(events: readonly DelegationEvent[], expected: "finished" | "live"): void {
  expect(events.map((event) => event.seq)).toEqual(events.map((_, index) => index + 1));
  expect(new Set(events.map((event) => event.id)).size).toBe(events.length);
  expect(events.filter((event) => event.type === "DELEGATION_SENT")).toHaveLength(1);
  expect(events[0]?.type).toBe("DELEGATION_SENT");
  for (const [index, event] of events.entries()) {
    const before = events[index - 1];
    // Only legal steps: above all, no lease is granted while another one is live.
    if (before)
      expect([before.state, event.type, event.status, isLegal(before.state, event)]).toContain(true);
  }
  const terminal = events.filter((event) => isTerminal(stateSchema.parse(event.state)));
  expect(terminal).toHaveLength(expected === "finished" ? 1 : 0);
  if (expected === "finished") expect(terminal[0]).toBe(events.at(-1));
}
