/** What a request lets people choose. Limit: it imports no code, because the first load of the console has it. */
import type { Decision } from "./decision.ts";
import type { Interrupt } from "./delegation.ts";

type Kind = Interrupt["kind"];
type Request = Pick<Interrupt["requests"][number], "options" | "action">;

const DECISIONS: readonly Decision[] = ["approve", "deny"];

/** The choices of the request; empty if there are none. */
export function choicesOf({ options = [], action }: Request): readonly unknown[] {
  if (options.length > 0) return options;
  return action === undefined ? [] : DECISIONS;
}

export const offersApproval = (request: Request): boolean => choicesOf(request).includes("approve");

/** Whether the question names deny as a choice; a credential can always be denied. */
export const offersDenial = (kind: Kind, request: Request): boolean =>
  kind === "auth" || choicesOf(request).includes("deny");

/** Whether it can be answered without an approval: each request that can be approved can be denied. */
export const isDeniable = ({ kind, requests }: Pick<Interrupt, "kind" | "requests">): boolean =>
  requests.every((request) => !offersApproval(request) || offersDenial(kind, request));
