import { computed } from "@preact/signals";
import type { Interrupt } from "../../schema/delegation.ts";
import { hasVoted } from "../../schema/vote-text.ts";
import { asking } from "../data/delegations.ts";
import { maySteer } from "../session/rights.ts";
import { session } from "../session/session.ts";

/** Whether the reader has approved it, so that it waits for others. */
export const isApproved = (interrupt: Interrupt | null): boolean =>
  interrupt !== null && hasVoted(interrupt, session.value?.principal ?? "");

/** The open questions that the reader may answer, the soonest to expire first. */
export const answerable = computed(() =>
  asking.value.map((listed) => listed.value).filter((listed) => maySteer(listed)),
);

/** Those that wait for the reader. */
export const mine = computed(() => answerable.value.filter(({ interrupt }) => !isApproved(interrupt)));
