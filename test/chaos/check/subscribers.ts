/** Rules about subscribers: each receives all events that it may see, once, in order, and no others. */
import type { StoredRecord } from "../history.ts";
import type { RowOf } from "../rows.ts";
import type { Facts, Violation } from "./facts.ts";

const isFor = (as: string, { delegator, target }: Pick<StoredRecord, "delegator" | "target">): boolean =>
  as === "operator" || delegator === as || as === `agent:${target}`;

/** The principal of each subscriber that started at the beginning. */
function subscribers({ history }: Facts): Map<string, string> {
  const whole = new Map<string, string>();
  const known = new Set<string>();
  for (const { sub, as, from } of history.subscribes) {
    if (!known.has(sub) && from === "0") whole.set(sub, as);
    known.add(sub);
  }
  return whole;
}

/** A subscriber that resumes by its cursor misses no event. */
export function missed(facts: Facts): Violation[] {
  const { history, records, sightings } = facts;
  const violations: Violation[] = [];
  for (const [sub, as] of subscribers(facts)) {
    const seen = new Set((sightings.get(sub) ?? []).map(({ id, seq }) => `${id}/${seq}`));
    for (const [id, events] of history.stored) {
      const record = records.get(id);
      if (record === undefined || !isFor(as, record)) continue;
      const absent = events.filter(({ seq }) => !seen.has(`${id}/${seq}`)).map(({ seq }) => seq);
      if (absent.length > 0)
        violations.push({ rule: "missed", id, what: `${sub} did not see ${absent.join(", ")}` });
    }
  }
  return violations;
}

/** It receives no event twice or out of order. */
export function repeated({ sightings }: Facts): Violation[] {
  const violations: Violation[] = [];
  for (const [sub, events] of sightings) {
    const newest = new Map<string, RowOf<"event">>();
    for (const event of events) {
      const before = newest.get(event.id);
      if (before !== undefined && event.seq <= before.seq) {
        const what = `${sub} saw ${event.seq} after ${before.seq}`;
        violations.push({ rule: "repeated", id: event.id, what, at: before.t });
      }
      newest.set(event.id, event);
    }
  }
  return violations;
}

/** A cursor within the retention never gets a RESET. */
export function reset({ history }: Facts): Violation[] {
  return history.resets.map(({ sub, cursor, t }) => ({
    rule: "reset",
    id: "",
    what: `${sub} was reset to ${cursor}`,
    at: t,
  }));
}

/** No principal sees another's work, by an event or by a read. */
export function foreignRead({ history, calls }: Facts): Violation[] {
  const eyes = new Map(history.subscribes.map(({ sub, as }) => [sub, as]));
  const seen = history.events.flatMap(({ sub, id, delegator, target }) =>
    isFor(eyes.get(sub) ?? "", { delegator, target })
      ? []
      : [{ rule: "foreign-read", id, what: `${sub} saw an event of ${delegator}` }],
  );
  const read = calls("foreign").flatMap(({ result, id = "", as, status, state }) =>
    result === "ok" || (result === "fail" && status !== 404)
      ? [{ rule: "foreign-read", id, what: `${as} tried ${state ?? "to read it"}: ${status}` }]
      : [],
  );
  return [...seen, ...read];
}
