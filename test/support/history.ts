/** Checks one delegation's whole event stream against the table. Limit: reads what was stored, not what was seen. */
import { expect } from "vitest";
import { MOVES, type Move } from "../../src/lifecycle/states.ts";
import { isTerminal, type State, stateSchema } from "../../src/schema/delegation.ts";
import { type DelegationEvent, eventSchema } from "../../src/schema/event.ts";
import type { Answer } from "./broker.ts";

/** All of a delegation's events, page by page. */
export async function eventsOf(
  api: { readonly events: (id: string, query: string) => Promise<Pick<Answer, "status" | "body">> },
  id: string,
): Promise<DelegationEvent[]> {
  const events: DelegationEvent[] = [];
  for (let after = "0"; ; ) {
    const { status, body } = await api.events(id, `?after=${after}&limit=1000`);
    if (status === 204) return events;
    expect(status).toBe(200);
    if (body.events.length === 0) return events;
    for (const event of body.events) events.push(eventSchema.parse(event));
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

/** Gap-free from 1, one DELEGATION_SENT, every step legal, and nothing behind the one terminal event. */
export function checkHistory(events: readonly DelegationEvent[], expected: "finished" | "live"): void {
  expect(events.map((event) => event.seq)).toEqual(events.map((_, index) => index + 1));
  expect(new Set(events.map((event) => event.id)).size).toBe(events.length);
  expect(events.filter((event) => event.type === "DELEGATION_SENT")).toHaveLength(1);
  expect(events[0]?.type).toBe("DELEGATION_SENT");
  for (const [index, event] of events.entries()) {
    const before = events[index - 1];
    // Legal steps only: above all, no lease is granted while another lives.
    if (before)
      expect([before.state, event.type, event.status, isLegal(before.state, event)]).toContain(true);
  }
  const terminal = events.filter((event) => isTerminal(stateSchema.parse(event.state)));
  expect(terminal).toHaveLength(expected === "finished" ? 1 : 0);
  if (expected === "finished") expect(terminal[0]).toBe(events.at(-1));
}
