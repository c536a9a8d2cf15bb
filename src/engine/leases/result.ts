/**
 * Refuses results that do not fit the result schema of their delegation; {@link resultIssues} has the rule. The script
 * says when a delegation has a schema, so that replies to all others need no second call to Redis.
 */
import type { Result } from "../../lifecycle/outcome.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { Issue } from "../../schema/issues.ts";
import { validate } from "../../schema/json-schema/validate.ts";

const MAX_ISSUES = 50;

type Parts = readonly { readonly data?: unknown }[];

/** `make` makes the move. It is called again, with `checked`, after a result that fits. */
export async function withCheckedResult(
  id: string,
  parts: Parts,
  make: (checked?: true) => Promise<Result>,
): Promise<Result> {
  const made = await make();
  if (made.outcome.kind !== "unchecked") return made;
  // The schema never changes, so this record is current.
  const schema = made.record?.get("result_schema");
  if (schema === undefined || schema === null)
    throw new Error("a delegation whose result must be checked has no schema");
  requireFit(id, JSON.parse(schema), parts);
  return make(true);
}

function requireFit(id: string, schema: unknown, parts: Parts): void {
  const issues = resultIssues(schema, parts);
  const [first] = issues;
  if (first === undefined) return;
  throw new ErrandError(
    "result_invalid",
    `The result does not fit the result_schema: ${first.path}: ${first.reason}`,
    {
      details: {
        issues: issues.slice(0, MAX_ISSUES),
        ...(issues.length > MAX_ISSUES && { issues_omitted: issues.length - MAX_ISSUES }),
      },
      delegation_id: id,
      delegation_valid: true,
    },
  );
}

/**
 * The issues of a reply with these parts, with paths within the reply. It fits, without issues, if exactly one part is data
 * and that data fits; other parts may say more. Limit: artifacts are not results.
 */
function resultIssues(schema: unknown, parts: Parts): readonly Issue[] {
  const [at, ...others] = parts.flatMap((part, index) => ("data" in part ? [index] : []));
  if (at === undefined) {
    return [{ path: "message.parts", reason: "must have a data part: the delegation has a result_schema" }];
  }
  if (others.length > 0) {
    return [{ path: "message.parts", reason: `must have exactly one data part, not ${others.length + 1}` }];
  }
  return validate(schema, parts[at]?.data).issues.map(({ path, reason }) => ({
    path: `message.parts.${at}.data${path === "" ? "" : `.${path}`}`,
    reason,
  }));
}
