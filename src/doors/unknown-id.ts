/** The error for an id of a wrong form: to whoever sent it, it is one that does not exist. */
import { notFound, unknownLease } from "../engine/errors.ts";
import { fileNotFound, uploadNotFound } from "../engine/files/file-errors.ts";
import { noRule } from "../engine/rules/read.ts";
import { noSchedule } from "../engine/schedules/read.ts";
import type { ErrandError } from "../schema/errors.ts";
import { FILE_ID, UPLOAD_ID } from "../schema/file.ts";
import type { Misfit } from "../schema/issues.ts";
import { RULE_ID } from "../schema/rule.ts";
import { SCHEDULE_ID } from "../schema/schedule.ts";
import { shownName } from "../schema/text.ts";
import { DELEGATION_ID, LEASE_ID } from "../schema/values.ts";

const UNKNOWN: ReadonlyMap<string | undefined, (id: string) => ErrandError> = new Map([
  [String(DELEGATION_ID), notFound],
  [String(LEASE_ID), unknownLease],
  [String(FILE_ID), fileNotFound],
  [String(UPLOAD_ID), uploadNotFound],
  [String(SCHEDULE_ID), noSchedule],
  [String(RULE_ID), noRule],
]);

/** Undefined: nothing in the value that had to be such an id is one of a wrong form. */
export function unknownId(value: unknown, { issues }: Misfit): ErrandError | undefined {
  for (const issue of issues) {
    const unknown = issue.code === "invalid_format" ? UNKNOWN.get(issue.pattern) : undefined;
    const given = unknown && at(value, issue.path);
    if (unknown && typeof given === "string") return unknown(shownName(given));
  }
  return undefined;
}

const at = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>(
    (of, step) => (typeof of === "object" && of !== null ? Reflect.get(of, step) : undefined),
    value,
  );
