/**
 * Refuses results that do not fit the result schema of their delegation; schema/result-rules.ts has the rule. The script
 * says when a delegation has a schema, so that replies to all others need no second call of Redis.
 */
import type { Result } from "../../lifecycle/outcome.ts";
import { ErrandError } from "../../schema/errors.ts";
import { resultIssues } from "../../schema/result-rules.ts";

const MAX_ISSUES = 50;

type Parts = Parameters<typeof resultIssues>[1];

/** `make` makes the move; it runs once more if the result had to be checked first, and fits. */
export async function withCheckedResult(
  id: string,
  parts: Parts,
  make: (checked?: true) => Promise<Result>,
): Promise<Result> {
  const made = await make();
  if (made.outcome.kind !== "unchecked") return made;
  // A delegation keeps its schema, so the record is not too old.
  requireFitting(id, JSON.parse(made.record?.result_schema ?? "true"), parts);
  return make(true);
}

function requireFitting(id: string, schema: unknown, parts: Parts): void {
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
