import type { DelegationError } from "../../schema/delegation.ts";

/** Why it failed, in a line: an agent may give no message. */
export const errorText = ({ code, message }: Pick<DelegationError, "code" | "message">): string =>
  message || `no message (${code})`;
