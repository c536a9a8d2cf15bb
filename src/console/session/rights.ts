/** The rights of the signed-in principal, so that the page shows no button that the broker would refuse. */
import { computed } from "@preact/signals";
import { nameOf } from "../../client/words.ts";
import { session } from "./session.ts";

const principal = computed(() => session.value?.principal ?? "");
const kind = computed(() => principal.value.split(":", 1)[0] ?? "");

export const isOperator = computed(() => kind.value === "operator");
/** Whether the principal sees everything, not only what concerns it. */
export const seesAll = computed(() => ["operator", "approver", "viewer"].includes(kind.value));
export const mayDelegate = computed(() => ["agent", "caller", "operator"].includes(kind.value));

/** Whether the agent itself is signed in. */
export const isSelf = (agent: string): boolean => principal.value === `agent:${agent}`;

interface Owned {
  readonly delegator: string;
}
/** Who delegated it, for the reader. */
export const delegatorOf = (delegation: Owned): string =>
  owns(delegation) ? "you" : nameOf(delegation.delegator);
export const owns = ({ delegator }: Owned): boolean => principal.value === delegator;

/** Answer, cancel, and send follow-ups. */
export const maySteer = (delegation: Owned): boolean =>
  isOperator.value || kind.value === "approver" || owns(delegation);
/** Redrive and erase. */
export const mayRedrive = (delegation: Owned): boolean => isOperator.value || owns(delegation);
