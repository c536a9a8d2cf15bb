import { computed } from "@preact/signals";
import { countsAfter, isVotedOn } from "../../schema/counted-votes.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import { hasVoted } from "../../schema/vote-text.ts";
import { agents } from "../data/agents.ts";
import { now } from "../data/clock.ts";
import { asking } from "../data/delegations.ts";
import type { ListedDelegation } from "../data/listed.ts";
import { maySteer } from "../session/rights.ts";
import { session } from "../session/session.ts";

type Asking = Pick<ListedDelegation, "target" | "delegator" | "interrupt">;

const reader = (): string => session.value?.principal ?? "";

/** Whether the reader has approved it, so that it waits for others. */
export const isApproved = (interrupt: Interrupt | null): boolean =>
  interrupt !== null && hasVoted(interrupt, reader());

/** By the name of the agent. Most have none. */
const votes = computed(
  () => new Map(agents.value?.flatMap((one) => (one.votes ? [[one.name, one.votes] as const] : []))),
);
export const votesOf = (agent: string) => votes.value.get(agent);

/** From when on the reader's approval counts, in ms since 1970; 0: from the beginning, null: never. */
export function countsFrom({ target, delegator, interrupt }: Asking): number | null {
  const found = votesOf(target);
  if (!found || !interrupt || !isVotedOn(interrupt)) return 0;
  const after = countsAfter(found, reader(), delegator);
  return after && after + Date.parse(interrupt.raised_at);
}

/** Whether an approval of the reader counts. Everybody who may answer can deny what offers that. */
export function isCounted(asked: Asking): boolean {
  const from = countsFrom(asked);
  return from !== null && (from === 0 || from <= now.value);
}

/** Whether others must approve it, so that it does not wait for the reader. */
export const isForOthers = (asked: Asking): boolean => isApproved(asked.interrupt) || !isCounted(asked);

/** The open questions that the reader may answer, the soonest to expire first. */
export const answerable = computed(() =>
  asking.value.map((listed) => listed.value).filter((listed) => maySteer(listed)),
);

/** Those that wait for the reader. */
export const mine = computed(() => answerable.value.filter((listed) => !isForOthers(listed)));
