import { computed } from "@preact/signals";
import { asking } from "../data/delegations.ts";
import { maySteer, owns } from "../session/rights.ts";
import { nameOf } from "../ui/words.ts";

/** The open questions that the reader may answer, the soonest to expire first. */
export const mine = computed(() =>
  asking.value.map((listed) => listed.value).filter((listed) => maySteer(listed)),
);

/** For whom a question is asked, for the reader. */
export const whomOf = (listed: { readonly delegator: string }): string =>
  owns(listed) ? "you" : nameOf(listed.delegator);
