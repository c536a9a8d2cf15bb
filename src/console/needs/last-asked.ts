import type { DelegationEvent } from "../../schema/event.ts";
import { asks, type ListedDelegation } from "../data/listed.ts";

/** Each delegation that asks, or did until a moment ago, as the page showed it. */
export const lastAsked = new Map<string, ListedDelegation>();

export function rememberAsked(listed: ListedDelegation): void {
  if (listed.interrupt) lastAsked.set(listed.id, listed);
}

/** After an event was noted. `listed`: the delegation now; it may ask again. */
export function forgetAsked(
  { delegation_id, state }: DelegationEvent,
  listed: ListedDelegation | undefined,
): void {
  if (!asks(state) && !(listed && asks(listed.state))) lastAsked.delete(delegation_id);
}
