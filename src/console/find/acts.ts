/** What can be done with several delegations at once. */
import { type Delegation, isTerminal } from "../../schema/delegation.ts";
import { mayDelegate, mayRedrive, maySteer } from "../session/rights.ts";

export type Act = "again" | "cancel";

interface Words {
  readonly verb: string;
  readonly doing: string;
  readonly done: string;
}

export const WORDS: Readonly<Record<Act, Words>> = {
  again: { verb: "Try again", doing: "Trying again", done: "tried again" },
  cancel: { verb: "Cancel", doing: "Canceling", done: "canceled" },
};

/** What fits this delegation and the reader may do. */
export function actOf(delegation: Delegation): Act | null {
  if (delegation.state === "failed") return mayRedrive(delegation) ? "again" : null;
  return !isTerminal(delegation.state) && maySteer(delegation) ? "cancel" : null;
}

/**
 * Whether a selection of many takes it in. One that was repeated can only be selected by itself: its repeat may have been
 * refused.
 */
export const isOffered = (delegation: Delegation): boolean =>
  actOf(delegation) !== null && delegation.redriven_as === null;

/** Whether the reader may act on any delegation. */
export const maySelect = (): boolean => mayDelegate.value || maySteer({ delegator: "" });
