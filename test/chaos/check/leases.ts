/** Rules about leases and replies: one holder, growing fences, one accepted reply. */
import type { Call } from "../history.ts";
import type { Facts, Grant, Violation } from "./facts.ts";

/** No two grants of a delegation have the same fence, and later grants have greater fences. */
export function fence({ grants }: Facts): Violation[] {
  const violations: Violation[] = [];
  for (const [id, all] of grants) {
    const byTime = [...all].sort((a, b) => a.granted_at - b.granted_at || a.known - b.known);
    let newest: Grant | undefined;
    for (const grant of byTime) {
      if (newest !== undefined && grant.fence <= newest.fence && grant.granted_at > newest.granted_at) {
        const what = `fence ${grant.fence} was granted after ${newest.fence}`;
        violations.push({ rule: "fence", id, what, at: newest.known });
      }
      newest = grant;
    }
    const first = new Map<number, Grant>();
    for (const grant of all) {
      const before = first.get(grant.fence);
      if (before !== undefined && before.granted_at === grant.granted_at) {
        violations.push({
          rule: "fence",
          id,
          what: `fence ${grant.fence} was granted twice`,
          at: before.known,
        });
      }
      first.set(grant.fence, grant);
    }
  }
  return violations;
}

/** Calls on a lease. An interrupt and a reply may be repeated on the lease that they ended. */
const BY_LEASE = ["heartbeat", "artifact", "release", "reply", "use"];

/** After a newer lease was granted, no call on an older one is accepted. */
export function staleLease({ calls, grants }: Facts): Violation[] {
  return BY_LEASE.flatMap(calls).flatMap(({ result, id = "", fence: own = 0, start, op }) => {
    if (result !== "ok") return [];
    const newer = grants.get(id)?.find((grant) => grant.fence > own && grant.known < start);
    if (newer === undefined) return [];
    const what = `${op} by fence ${own} was accepted after ${newer.fence} was granted`;
    return [{ rule: "stale-lease", id, what, at: newer.known }];
  });
}

/**
 * Whether a reply ended its delegation. `duplicate` means that this reply was accepted before; if it asked for a
 * retry, `duplicate` does not tell the delegation's state.
 */
function ended({ result, wants, outcome, state }: Call): boolean {
  if (result !== "ok") return false;
  return wants !== "retry" || (outcome === "matched" && state === "failed");
}

function accepted({ calls }: Facts): Map<string, Call[]> {
  const byId = new Map<string, Call[]>();
  for (const call of calls("reply")) {
    if (!ended(call) || call.id === undefined) continue;
    const known = byId.get(call.id);
    if (known) known.push(call);
    else byId.set(call.id, [call]);
  }
  return byId;
}

/** One reply ends the delegation. */
export function twoReplies(facts: Facts): Violation[] {
  const violations: Violation[] = [];
  for (const [id, replies] of accepted(facts)) {
    const leases = new Set(replies.map(({ lease }) => lease));
    const matched = replies.filter(({ outcome }) => outcome === "matched");
    const at = Math.min(...replies.map(({ end }) => end));
    if (leases.size > 1) {
      violations.push({
        rule: "two-replies",
        id,
        what: `replies by ${leases.size} leases were accepted`,
        at,
      });
    } else if (matched.length > 1) {
      violations.push({ rule: "two-replies", id, what: `${matched.length} replies were the first`, at });
    }
  }
  return violations;
}

/** One call, which may be repeated with its key, gets the answer to a request. */
export function usedTwice({ calls }: Facts): Violation[] {
  const violations: Violation[] = [];
  const first = new Map<string, { by: string; end: number }>();
  for (const { id = "", asked = "", used, fence: own, use_key, end } of calls("use")) {
    if (used !== "now") continue;
    const [place, by] = [`${id} ${asked}`, `fence ${own} with the key ${use_key}`];
    const before = first.get(place);
    if (before === undefined) first.set(place, { by, end });
    else if (before.by !== by) {
      const what = `the answer to ${asked} was used by ${before.by} and by ${by}`;
      violations.push({ rule: "used-twice", id, what, at: Math.min(before.end, end) });
    }
  }
  return violations;
}

/** A delegation that waits for all its children is leased after they have ended. */
export function wokenEarly({ grants }: Facts): Violation[] {
  return [...grants].flatMap(([id, all]) =>
    all.flatMap(({ fence: own, unended = 0, known }) =>
      unended === 0
        ? []
        : [
            {
              rule: "woken-early",
              id,
              what: `fence ${own}: ${unended} of its children had not ended`,
              at: known,
            },
          ],
    ),
  );
}

/** The accepted reply is the stored one. */
export function lostReply(facts: Facts): Violation[] {
  const violations: Violation[] = [];
  for (const [id, replies] of accepted(facts)) {
    const [kept] = facts.finals.get(id) ?? [];
    // Another rule finds a missing delegation.
    if (kept === undefined || !kept.found) continue;
    for (const { wants, text = "", end, fence: own } of replies) {
      const state = wants === "retry" ? "failed" : wants;
      const same = kept.state === state && (state !== "completed" || kept.reply === text);
      if (same) continue;
      const what = `the reply of fence ${own} (${state}) was accepted; kept is ${kept.state} "${kept.reply}"`;
      violations.push({ rule: "lost-reply", id, what, at: end });
    }
  }
  return violations;
}
