import { computed } from "@preact/signals";
import { asking } from "../data/delegations.ts";
import { maySteer } from "../session/rights.ts";

/** The open questions that the reader may answer, the soonest to expire first. */
export const mine = computed(() =>
  asking.value.map((listed) => listed.value).filter((listed) => maySteer(listed)),
);
