/**
 * The rule by which a reply fits the result schema of its delegation: of its parts, exactly one is data, and that data
 * fits. Other parts may say more. Limit: artifacts are not results.
 */
import type { Issue } from "./issues.ts";
import { validate } from "./json-schema/validate.ts";

type Parts = readonly { readonly data?: unknown }[];

/** The issues of a reply with these parts, with paths within the reply; none if it fits. */
export function resultIssues(schema: unknown, parts: Parts): readonly Issue[] {
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
