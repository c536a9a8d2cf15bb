/**
 * Rules about budgets. What a tree has used is, for each lease, the largest report that was accepted; the broker keeps a sum
 * for each delegation and one for each tree. Limit: reports whose answer is unknown may count or not.
 */
import { MOVES } from "../../../src/lifecycle/states.ts";
import { LIMITS } from "../../../src/schema/limits.ts";
import type { FinalRead, StoredEvent } from "../history.ts";
import type { Facts, Violation } from "./facts.ts";
import { voidAt } from "./loss.ts";

/** How much later than it should the broker may stop a tree while it is being broken. */
const LATE_MS = 90_000;

interface Used {
  readonly tokens: number;
  readonly attempts: number;
}

/** How much each delegation has used by its accepted reports, and at most, with those of unknown outcome. */
function reports({
  history,
  calls,
}: Facts): (id: string) => { readonly least: number; readonly most: number } {
  const isVoid = voidAt(history);
  const byLease = new Map<string, Map<number, { least: number; most: number }>>();
  for (const op of ["heartbeat", "reply"])
    for (const { id = "", fence = 0, tokens, result, end, code } of calls(op)) {
      // A held heartbeat may report, and then lose its lease.
      const isRefused = result === "fail" && !(op === "heartbeat" && code === "lease_lost");
      if (tokens === undefined || isRefused) continue;
      const leases = byLease.get(id) ?? new Map<number, { least: number; most: number }>();
      byLease.set(id, leases);
      const known = leases.get(fence) ?? { least: 0, most: 0 };
      const isSure = result === "ok" && !isVoid(end);
      leases.set(fence, {
        least: Math.max(known.least, isSure ? tokens : 0),
        most: Math.max(known.most, tokens),
      });
    }
  return (id) => {
    const leases = [...(byLease.get(id)?.values() ?? [])];
    return {
      least: leases.reduce((sum, { least }) => sum + least, 0),
      most: leases.reduce((sum, { most }) => sum + most, 0),
    };
  };
}

/** How many of its attempts have begun. */
const begun = (events: readonly StoredEvent[] = []): number =>
  Math.max(0, ...events.map(({ status, attempt = 0 }) => (status === MOVES.lease.status ? attempt : 0)));

/** What a delegation and everything under it have used. */
function treeSum({ history, finals, records }: Facts): (id: string) => Used {
  const children = new Map<string, string[]>();
  for (const { id, parent } of records.values())
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), id]);
  const sum = (id: string): Used => {
    const below = (children.get(id) ?? []).map(sum);
    return {
      tokens: below.reduce((all, { tokens }) => all + tokens, finals.get(id)?.[0]?.tokens ?? 0),
      attempts: below.reduce((all, { attempts }) => all + attempts, begun(history.stored.get(id))),
    };
  };
  return sum;
}

/** Each accepted report counts once, for its delegation and for every tree that it is part of. */
export function miscounted(facts: Facts): Violation[] {
  const [reported, used] = [reports(facts), treeSum(facts)];
  return [...facts.finals].flatMap(([id, [final]]) => {
    if (!final?.found) return [];
    const found = (what: string): Violation[] => [{ rule: "miscounted", id, what }];
    const { least, most } = reported(id);
    const { tokens = 0, budget } = final;
    if (tokens < least || tokens > most)
      return found(`it shows ${tokens} tokens; its reports are ${least} to ${most}`);
    if (budget === undefined) return [];
    const tree = used(id);
    if (budget.used.tokens === tree.tokens && budget.used.attempts === tree.attempts) return [];
    const shown = `${budget.used.tokens} tokens and ${budget.used.attempts} attempts`;
    return found(`its tree shows ${shown}, and used ${tree.tokens} and ${tree.attempts}`);
  });
}

/** A tree that used more than its budget ends by that, within the time for its worker; no other tree does. */
export function overspent({ history, finals }: Facts): Violation[] {
  return [...finals].flatMap(([id, [final]]) => {
    const what = final?.found === true ? wrongEnd(final, history.stored.get(id) ?? []) : null;
    return what === null ? [] : [{ rule: "overspent", id, what }];
  });
}

function wrongEnd({ budget, error }: FinalRead, events: readonly StoredEvent[]): string | null {
  const limit = budget?.limit;
  const isFailed = error === "budget_exceeded";
  if (!budget || !limit) return isFailed ? "it has no budget, and ended by one" : null;
  const { used } = budget;
  const text = `${used.tokens} of ${limit.tokens} tokens, ${used.attempts} of ${limit.attempts} attempts`;
  const isOver =
    used.tokens > (limit.tokens ?? Number.POSITIVE_INFINITY) ||
    used.attempts > (limit.attempts ?? Number.POSITIVE_INFINITY);
  if (isFailed && !isOver) return `it ended by its budget, and used ${text}`;
  if ((budget.exceeded === true) !== isOver)
    return `its budget is shown ${isOver ? "not " : ""}to be exceeded: ${text}`;
  return unstopped(events);
}

/** After the notice, nobody gets a lease, and it ends or asks for more. */
function unstopped(events: readonly StoredEvent[]): string | null {
  const from = events.findIndex(({ status }) => status === MOVES.overrun.status);
  if (from < 0) return null;
  const after = events.slice(from + 1);
  const end = after.findIndex(({ status }) => status === MOVES.answer.status);
  const until = end < 0 ? after : after.slice(0, end);
  if (until.some(({ status }) => status === MOVES.lease.status))
    return `event ${from + 1} says that its budget is exceeded, and it was leased after that`;
  const [noted, last] = [events[from]?.at, until.at(-1)?.at];
  if (noted === undefined || last === undefined) return null;
  const late = last - noted - LIMITS.budget_grace.value * 1_000;
  return late > LATE_MS ? `it went on for ${late} ms after the time of its worker` : null;
}

/** At the end, every tree has reported to the one above what it has used. */
export function unreported({ records }: Facts): Violation[] {
  return [...records.values()].flatMap(({ id, spends }) =>
    spends === true
      ? [{ rule: "unreported", id, what: "what its tree has used is still to be reported to its parent" }]
      : [],
  );
}
