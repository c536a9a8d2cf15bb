/**
 * The issues of an invalid value, in the same form everywhere: each has a path and a reason; unknown fields are named.
 * Limit: only the first 50 are listed, because a hostile body can have a million; long names are cut.
 */
import type * as z from "zod";
import { ErrandError } from "./errors.ts";
import { shownName } from "./text.ts";

export interface Issue {
  readonly path: string;
  readonly reason: string;
}

export interface Issues {
  readonly issues: readonly Issue[];
  /** The number of issues not listed. */
  readonly omitted: number;
  /** The first one as text: its path and reason. */
  readonly text: string;
}

interface Place {
  /** Where an unknown field is: "unknown field in the body". */
  readonly where?: string;
  /** The name of the whole value, for an issue without a path. */
  readonly whole: string;
  /** The path to the value within the request. */
  readonly under?: string;
}

const MAX_ISSUES = 50;

export function issuesOf({ issues: found }: z.ZodError, { where, whole, under = "" }: Place): Issues {
  const unknown = where === undefined ? "unknown field" : `unknown field in the ${where}`;
  const issues = found
    .slice(0, MAX_ISSUES)
    .flatMap((issue) => {
      const path = [...(under === "" ? [] : [under]), ...issue.path.map((name) => shownName(String(name)))];
      if (issue.code !== "unrecognized_keys") return [{ path: path.join("."), reason: issue.message }];
      return issue.keys
        .slice(0, MAX_ISSUES)
        .map((key) => ({ path: [...path, shownName(key)].join("."), reason: unknown }));
    })
    .slice(0, MAX_ISSUES);
  const [first] = issues;
  return {
    issues,
    omitted: countOf(found) - issues.length,
    text: `${first?.path || whole}: ${first?.reason ?? "is invalid"}`,
  };
}

const countOf = (issues: readonly z.core.$ZodIssue[]): number =>
  issues.reduce((sum, issue) => sum + (issue.code === "unrecognized_keys" ? issue.keys.length : 1), 0);

/** The `invalid_request` error with these issues. */
export function invalidRequest(error: z.ZodError, place: Place): ErrandError {
  const { issues, omitted, text } = issuesOf(error, place);
  return new ErrandError("invalid_request", text, {
    details: { issues, ...(omitted > 0 && { issues_omitted: omitted }) },
  });
}
