/** The error for an id of a wrong form: to whoever sent it, it is one that does not exist. */
import type * as z from "zod";
import { notFound, unknownLease } from "../engine/errors.ts";
import type { ErrandError } from "../schema/errors.ts";
import { shownName } from "../schema/text.ts";
import { DELEGATION_ID, LEASE_ID } from "../schema/values.ts";

const UNKNOWN: ReadonlyMap<string | undefined, (id: string) => ErrandError> = new Map([
  [String(DELEGATION_ID), notFound],
  [String(LEASE_ID), unknownLease],
]);

/** Undefined: no member of the value that had to be such an id is one of a wrong form. */
export function unknownId(value: unknown, { issues }: z.ZodError): ErrandError | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  for (const issue of issues) {
    const [name, ...deeper] = issue.path;
    if (name === undefined || deeper.length > 0 || issue.code !== "invalid_format") continue;
    const given: unknown = Reflect.get(value, name);
    const unknown = UNKNOWN.get(issue.pattern);
    if (unknown && typeof given === "string") return unknown(shownName(given));
  }
  return undefined;
}
