/** Rules about the final state: every gateway shows what Redis holds, and every waiting record has its ticket. */
import type { Facts, Violation } from "./facts.ts";

/** All gateways show the same, and it matches Redis. */
export function mismatch({ finals, records }: Facts): Violation[] {
  const violations: Violation[] = [];
  for (const [id, reads] of finals) {
    const hashes = new Set(reads.map(({ hash }) => hash));
    if (hashes.size > 1) {
      violations.push({ rule: "mismatch", id, what: `gateways show ${hashes.size} different delegations` });
    }
    const record = records.get(id);
    for (const { gateway, found, state, version } of reads) {
      if (
        found === (record !== undefined) &&
        (!record || (record.state === state && record.version === version))
      ) {
        continue;
      }
      const there = record ? `${record.state} ${record.version}` : "nothing";
      const shown = found ? `${state} ${version}` : "nothing";
      violations.push({ rule: "mismatch", id, what: `${gateway} shows ${shown}, Redis holds ${there}` });
    }
  }
  return violations;
}

/** A waiting record has its newest ticket, unless it is behind another one, and every ticket has its record. */
export function ticket({ history: { waiting } }: Facts): Violation[] {
  const tickets = new Set(waiting.tickets);
  const ids = new Set(waiting.records.map(({ id }) => id));
  const without = waiting.records.flatMap(({ id, state, ticket: n, behind }) => {
    if (state !== "submitted" || tickets.has(`${id}.${n}`) === (behind === undefined)) return [];
    const what = behind
      ? `it is behind ${behind}, but ticket ${n} is in a queue`
      : `it waits, but ticket ${n} is in no queue`;
    return [{ rule: "ticket", id, what }];
  });
  const orphans = waiting.tickets.flatMap((name) => {
    const [id = ""] = name.split(".");
    return ids.has(id) ? [] : [{ rule: "ticket", id, what: `ticket ${name} has no record` }];
  });
  return [...without, ...orphans];
}
