/** How many files a delegation has, without looking into them. */
import type { Part } from "../../../schema/a2a.ts";
import type { Delegation } from "../../../schema/delegation.ts";

/** Among the parts of a message; every artifact is one. */
export const isFile = ({ raw, url }: Part): boolean => raw !== undefined || url !== undefined;

export const countFiles = ({ artifacts, reply, message, history }: Delegation): number =>
  artifacts.length +
  [reply, message, ...history].reduce((sum, one) => sum + (one?.parts.filter(isFile).length ?? 0), 0);
