/**
 * Notifications that no event causes, only the time that passes: a question is about to expire, is escalated, or a reminder
 * of it is due. Each is added once, also by several gateways: its name leaves the list in the step that adds the
 * notifications. Limit: the `votes` at the time of the question decide whether it has an escalation and reminders; the
 * present `votes` decide the rest.
 */
import { readRecord, type StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { isUnavailable } from "../../redis/errors.ts";
import { countsAfter } from "../../schema/counted-votes.ts";
import type { Principal } from "../access/access.ts";
import type { Broker } from "../broker.ts";
import { openInterrupt } from "../delegations/parse.ts";
import { countsAt, hasApproved, type VotedOn, votedOn } from "./approvers.ts";
import type { Audience, Happening } from "./audience.ts";
import type { SubscriptionStore, Timely } from "./store.ts";
import { type Due, parseTimely } from "./timely.ts";

export async function notifyOfTime(
  broker: Pick<Broker, "agents" | "redis" | "shards">,
  store: SubscriptionStore,
  audience: Audience,
  now: number,
): Promise<void> {
  for (const name of await store.dueOfTime(now)) {
    const { delegation, question, due } = parseTimely(name);
    const record = await readRecord(broker.redis, broker.shards, delegation).catch((error: unknown) => {
      // Its shard is away: try again later.
      if (isUnavailable(error)) throw error;
      return null;
    });
    const open = record && openInterrupt(record);
    const isOpen = record && open?.id === question;
    const { happening, next } = isOpen
      ? stepOf(name, due, { record, voted: await votedOn(broker, record, open), now })
      : NOTHING;
    const notices =
      happening && record
        ? audience.noticesOf({
            ...{ ...happening, agent: record.get("target"), at: now },
            ...{ delegation, question, delegator: record.get("delegator") },
          })
        : [];
    await store.addOfTime(notices, now, { name, next });
  }
}

interface Step {
  readonly happening: Pick<Happening, "kind" | "reason" | "reminder" | "only"> | null;
  /** What is due next in its place. */
  readonly next?: Timely | undefined;
}
const NOTHING: Step = { happening: null };

interface Open {
  readonly record: StoredDelegation;
  readonly voted: VotedOn | null;
  readonly now: number;
}

function stepOf(name: string, due: Due, { record, voted, now }: Open): Step {
  const only = voted && {
    only: (principal: Principal) => countsAt(voted, principal, now) && !hasApproved(record, principal),
  };
  if (due.what === "expiring") return { happening: { kind: "question_expiring", ...only } };
  // The agent has no `votes` any more.
  if (!voted || !only) return NOTHING;
  const { votes, delegator, raised_at } = voted;
  const ends = record.get("interrupt_expires_at") ?? 0;
  const at = (next: string, ms: number) => (ms < ends ? { next: { name: next, at: Math.round(ms) } } : {});
  if (due.what === "remind") {
    if (votes.remind_seconds === null) return NOTHING;
    const { delegation, question } = parseTimely(name);
    return {
      happening: { kind: "question", reason: "reminder", reminder: due.n, ...only },
      ...at(`${delegation} ${question} remind ${due.n + 1}`, now + votes.remind_seconds * 1000),
    };
  }
  if (votes.escalate_seconds === null) return NOTHING;
  const from = raised_at + votes.escalate_seconds * 1000;
  if (from > now) return { happening: null, ...at(name, from) };
  // Those whose approval counts from the beginning were notified when it was asked.
  const isNew = (principal: Principal) => (countsAfter(votes, principal.text, delegator) ?? 0) > 0;
  return {
    happening: {
      ...{ kind: "question", reason: "escalated" },
      only: (principal) => isNew(principal) && only.only(principal),
    },
  };
}
