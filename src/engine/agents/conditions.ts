/**
 * The preconditions of a request about an agent. Its ETag is the version of the settings, a dot and a hash of the answer. A
 * change compares only the version, because presence and counts change at any time.
 */
import { ErrandError } from "../../schema/errors.ts";
import { hasAnyTag, hasStrongTag } from "../../util/entity-tags.ts";
import { type StoredAgent, tagOf } from "./stored-agent.ts";

/** The headers. */
export interface Conditions {
  readonly ifMatch?: string | undefined;
  readonly ifNoneMatch?: string | undefined;
}

export const isConditional = ({ ifMatch, ifNoneMatch }: Conditions): boolean =>
  ifMatch !== undefined || ifNoneMatch !== undefined;

/** Throws `precondition_failed` if the agent, null for none, does not meet them. */
export function requireConditions(
  name: string,
  current: StoredAgent | null,
  { ifMatch, ifNoneMatch }: Conditions,
): void {
  const tag = current && tagOf(current);
  const isCurrent = (opaque: string) => opaque.split(".")[0] === tag;
  if (ifMatch !== undefined && !(current && hasStrongTag(ifMatch, isCurrent))) {
    throw new ErrandError(
      "precondition_failed",
      current ? `Agent '${name}' has changed: its version is now ${tag}.` : `There is no agent '${name}'.`,
    );
  }
  if (current && hasAnyTag(ifNoneMatch, isCurrent)) {
    throw new ErrandError("precondition_failed", `Agent '${name}' exists, with version ${tag}.`, {
      recovery: "Change it with PATCH, or replace it without If-None-Match.",
    });
  }
}
