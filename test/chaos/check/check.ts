/** The checker: applies every rule to one history. It is a pure function of data. */
import type { History } from "../history.ts";
import { doubled, lost, phantom, uncanceled, unfinished } from "./accepted.ts";
import { miscounted, overspent, unreported } from "./budgets.ts";
import { charged } from "./charged.ts";
import { fork, gap, illegalMove, twoEnds } from "./events.ts";
import { type Facts, toFacts, type Violation } from "./facts.ts";
import { mismatch, ticket } from "./finals.ts";
import { fence, lostReply, staleLease, twoReplies, usedTwice, wokenEarly } from "./leases.ts";
import { judge, type Verdict } from "./loss.ts";
import { deadLink, mistold, untold } from "./notices.ts";
import { a2aOrder, agUiOrder, died, forgedDelivery, internalError, leak, undelivered } from "./outside.ts";
import { misruled, overused, revokedRule } from "./rules.ts";
import { foreignRead, missed, repeated, reset } from "./subscribers.ts";
import { outOfTurn } from "./turns.ts";
import { outvoted } from "./votes.ts";

/** Rules by the name that their violations have. */
export const RULES = {
  lost,
  doubled,
  phantom,
  unfinished,
  uncanceled,
  gap,
  "two-ends": twoEnds,
  "illegal-move": illegalMove,
  fork,
  missed,
  repeated,
  reset,
  "foreign-read": foreignRead,
  fence,
  "stale-lease": staleLease,
  "two-replies": twoReplies,
  "lost-reply": lostReply,
  "used-twice": usedTwice,
  "woken-early": wokenEarly,
  "out-of-turn": outOfTurn,
  miscounted,
  overspent,
  unreported,
  charged,
  "revoked-rule": revokedRule,
  overused,
  misruled,
  outvoted,
  untold,
  mistold,
  "dead-link": deadLink,
  mismatch,
  ticket,
  "delivery-forged": forgedDelivery,
  undelivered,
  "a2a-order": a2aOrder,
  "ag-ui-order": agUiOrder,
  "internal-error": internalError,
  leak,
  died,
} as const satisfies Record<string, (facts: Facts) => Violation[]>;
export type RuleName = keyof typeof RULES;

export function check(history: History): Verdict {
  const facts = toFacts(history);
  return judge(
    history,
    Object.values(RULES).flatMap((rule) => rule(facts)),
  );
}
