import type { DelegationEvent } from "../../schema/event.ts";
import { asks, type Flight } from "../data/flight.ts";

/** Each delegation that asks, or did until a moment ago, as the page showed it. */
export const lastAsked = new Map<string, Flight>();

export function rememberAsked(flight: Flight): void {
  if (flight.interrupt) lastAsked.set(flight.id, flight);
}

/** After an event was noted. `flight`: the delegation now; it may ask again. */
export function forgetAsked({ delegation_id, state }: DelegationEvent, flight: Flight | undefined): void {
  if (!asks(state) && !(flight && asks(flight.state))) lastAsked.delete(delegation_id);
}
