/** Rules about a delegation's own events: no gap, legal steps, one end, and the same for every reader. */
import { MOVES, type Move } from "../../../src/lifecycle/states.ts";
import { isTerminal, type State, stateSchema } from "../../../src/schema/delegation.ts";
import type { StoredEvent } from "../history.ts";
import type { Facts, Violation } from "./facts.ts";

function forEach(
  { history }: Facts,
  judge: (events: readonly StoredEvent[], id: string) => string | null,
  rule: string,
): Violation[] {
  const violations: Violation[] = [];
  for (const [id, events] of history.stored) {
    const what = judge(events, id);
    if (what !== null) violations.push({ rule, id, what });
  }
  return violations;
}

/** Numbered from 1 without a gap, up to the record's version. */
export function gap(facts: Facts): Violation[] {
  return forEach(
    facts,
    (events, id) => {
      const wrong = events.findIndex(({ seq }, index) => seq !== index + 1);
      if (wrong >= 0) return `event ${wrong + 1} has seq ${events[wrong]?.seq}`;
      const version = facts.records.get(id)?.version;
      if (version === undefined || version === events.length) return null;
      return `version ${version}, but ${events.length} events`;
    },
    "gap",
  );
}

const stateOf = ({ state }: StoredEvent): State => stateSchema.parse(state);

/** One final event, and none after it. */
export function twoEnds(facts: Facts): Violation[] {
  return forEach(
    facts,
    (events) => {
      const end = events.findIndex((event) => isTerminal(stateOf(event)));
      return end < 0 || end === events.length - 1
        ? null
        : `it ended at ${end + 1} of ${events.length} events`;
    },
    "two-ends",
  );
}

function isLegal(from: State | null, event: StoredEvent): boolean {
  const to = stateOf(event);
  return Object.values(MOVES).some(
    (move: Move) =>
      move.event === event.type &&
      (from === null ? move.from.length === 0 : move.from.includes(from)) &&
      (move.status === undefined || move.status === event.status) &&
      (move.to.length === 0 ? to === from : move.to.includes(to)),
  );
}

/** Every step is a row of the state table. */
export function illegalMove(facts: Facts): Violation[] {
  return forEach(
    facts,
    (events) => {
      let from: State | null = null;
      for (const event of events) {
        if (!isLegal(from, event))
          return `${from ?? "nothing"} → ${event.state} by ${event.type} ${event.status}`;
        from = stateOf(event);
      }
      return null;
    },
    "illegal-move",
  );
}

/** The event that a subscriber saw as number n is the stored event n. */
export function fork({ history }: Facts): Violation[] {
  return history.events.flatMap(({ id, seq, hash, sub, t }) => {
    const stored = history.stored.get(id);
    // Other rules find a stream that is missing or unreadable.
    if (stored === undefined) return [];
    const kept = stored.find((event) => event.seq === seq);
    if (kept?.hash === hash) return [];
    const what = kept ? `${sub} saw another event ${seq}` : `${sub} saw event ${seq}, which is not kept`;
    return [{ rule: "fork", id, what, at: t }];
  });
}
