/** The rule about conversations with an agent that works on one delegation of each at a time. */
import { MOVES } from "../../../src/lifecycle/states.ts";
import { isTerminal, stateSchema } from "../../../src/schema/delegation.ts";
import type { StoredEvent } from "../history.ts";
import type { Facts, Violation } from "./facts.ts";

/** When it was accepted, had its first lease, and ended, by Redis' clock. */
interface Turn {
  readonly id: string;
  readonly sent: number;
  readonly from: number;
  readonly to: number;
}

function turnOf(id: string, events: readonly StoredEvent[]): Turn[] {
  const first = events.find(({ status }) => status === MOVES.lease.status);
  const [sent, from] = [events[0]?.at, first?.at];
  // Without a lease it holds up nobody.
  if (sent === undefined || from === undefined) return [];
  const end = events.find(({ state }) => isTerminal(stateSchema.parse(state)));
  return [{ id, sent, from, to: end?.at ?? Number.POSITIVE_INFINITY }];
}

/** From its first lease to its end, no other delegation of its conversation has a lease; they begin in order of acceptance. */
export function outOfTurn({ history, records }: Facts): Violation[] {
  const conversations = new Map<string, Turn[]>();
  for (const { id, target, delegator, context } of records.values()) {
    if (context === undefined) continue;
    const name = `${target} ${delegator} ${context}`;
    const turns = turnOf(id, history.stored.get(id) ?? []);
    conversations.set(name, [...(conversations.get(name) ?? []), ...turns]);
  }
  return [...conversations.values()].flatMap((turns) => {
    turns.sort((a, b) => a.from - b.from || a.to - b.to);
    return turns.slice(1).flatMap(({ id, sent, from }, at) => {
      const before = turns[at];
      const found = (what: string) => [{ rule: "out-of-turn", id, what }];
      if (before === undefined) return [];
      if (from < before.to) return found(`it was leased ${before.to - from} ms before ${before.id} ended`);
      return sent < before.sent ? found(`it was leased after ${before.id}, which was accepted later`) : [];
    });
  });
}
