/**
 * The rule that no attempt is charged to a worker that lived. It reads the events of each delegation, whose instants are by
 * Redis' clock. Limit: heartbeats leave no event, so a lease lasts at least as long as its events say.
 */
import { MOVES } from "../../../src/lifecycle/states.ts";
import { LIMITS } from "../../../src/schema/limits.ts";
import type { History, StoredEvent } from "../history.ts";
import type { Facts, Violation } from "./facts.ts";

/** An outage that lasted at least this long was one for the broker, too. */
const OUTAGE_MS = LIMITS.outage_seconds.value * 1_000 + 500;

const { lease: granted, reclaim: reclaimed, lapse: lapsed, grace, retry, progress, artifact } = MOVES;
const { ask_budget: asked, answer: answered } = MOVES;
const CALLS: readonly string[] = [progress.status, artifact.status];

/** The newest lease of a delegation: until when it lasts at least, its length, and the outages that extended it. */
interface Lease {
  until: number;
  readonly ms: number;
  readonly attempt: number | undefined;
  graces: number;
}

export function charged({ history }: Facts): Violation[] {
  return [...history.stored].flatMap(([id, events]) => {
    const what = firstCharge(events, history.outages);
    return what === null ? [] : [{ rule: "charged", id, what }];
  });
}

function firstCharge(events: readonly StoredEvent[], outages: History["outages"]): string | null {
  const leases: Lease[] = [];
  let before = "";
  let attempt = 1;
  for (const { seq, status, at, expires, attempt: shown } of events) {
    const lease = leases.at(-1);
    if (status === retry.status) attempt += 1;
    if (status === lapsed.status) {
      attempt += 1;
      const why = at === undefined || lease === undefined ? null : early(lease, at, outages);
      if (why !== null) return `event ${seq}: ${why}`;
    }
    if (status === reclaimed.status) {
      attempt -= 1;
      if (before !== lapsed.status) return `event ${seq}: reclaimed after ${before}`;
      if (shown !== lease?.attempt)
        return `event ${seq}: reclaimed as attempt ${shown}, was ${lease?.attempt}`;
    }
    if (status === granted.status && shown !== undefined && shown !== attempt)
      return `event ${seq}: leased as attempt ${shown}, but ${attempt - 1} were spent`;
    if (
      (status === granted.status || status === reclaimed.status) &&
      at !== undefined &&
      expires !== undefined
    )
      leases.push({ until: expires, ms: expires - at, attempt: shown, graces: 0 });
    else if (lease && status === grace.status && expires !== undefined) {
      lease.until = Math.max(lease.until, expires);
      lease.graces += 1;
    } else if (lease && CALLS.includes(status) && at !== undefined) {
      lease.until = Math.max(lease.until, at + lease.ms);
      lease.graces = 0;
    }
    // A follow-up changes no lease. After a lapse, only the broker asks, for a larger budget.
    const isAsked = before === lapsed.status && (status === asked.status || status === answered.status);
    if (status !== MOVES.message.status && !isAsked) before = status;
  }
  return null;
}

/** Why a lease must not have expired at this instant; null if it may. */
function early({ until, ms, graces }: Lease, at: number, outages: History["outages"]): string | null {
  if (at < until) return `the lease expired ${until - at} ms before its end`;
  if (graces >= LIMITS.graces.value) return null;
  const over = outages.find(
    ({ from, to }) => to - from >= OUTAGE_MS && from < until && from <= at && at < to + ms,
  );
  return over === undefined
    ? null
    : `the lease expired ${at - over.to} ms after an outage; it lasts ${ms} ms`;
}
