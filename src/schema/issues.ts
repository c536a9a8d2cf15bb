/**
 * The issues of an invalid value, in the same form everywhere: each has a path and a reason; unknown fields are named.
 * Limit: only the first 50 are listed, because a hostile body can have a million; long names are cut.
 */
import type * as z from "zod";
import { nearestName } from "../util/similar.ts";
import { ErrandError } from "./errors.ts";
import { openNames, phrase, UNKNOWN_FIELD } from "./phrases.ts";
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

/** Why a schema refuses a value. Only {@link readAs} makes one, so every message in it is for people. */
export class Misfit {
  readonly #error: z.ZodError;

  constructor(error: z.ZodError) {
    this.#error = error;
  }

  get issues(): readonly z.core.$ZodIssue[] {
    return this.#error.issues;
  }
}

export type Read<T> =
  | { readonly success: true; readonly data: T; readonly error?: undefined }
  | { readonly success: false; readonly data?: undefined; readonly error: Misfit };

/** Checks a value of which people learn why it is refused. */
export function readAs<T>(schema: z.ZodType<T>, value: unknown): Read<T> {
  const { success, data, error } = schema.safeParse(value, { error: phrase });
  return success ? { success, data } : { success, error: new Misfit(error) };
}

const MAX_ISSUES = 50;
/** More names are not compared with the known ones. */
const MAX_COMPARED = 20;

/** Of a value of another type, zod checks the length all the same, if it has one. */
const isOfSameValue = (before: z.core.$ZodIssue | undefined, { path }: z.core.$ZodIssue): boolean =>
  before?.code === "invalid_type" &&
  before.path.length === path.length &&
  path.every((name, at) => name === before.path[at]);

export function issuesOf({ issues }: Misfit, { where, whole, under = "" }: Place): Issues {
  const found = issues.filter((issue, at) => !isOfSameValue(issues[at - 1], issue));
  const all = found.slice(0, MAX_ISSUES).flatMap(expanded);
  const unknown = where === undefined ? UNKNOWN_FIELD : `${UNKNOWN_FIELD} in the ${where}`;
  const shown = all
    .slice(0, MAX_ISSUES)
    .flatMap((issue) => {
      const path = [...(under === "" ? [] : [under]), ...issue.path.map((name) => shownName(String(name)))];
      if (issue.code !== "unrecognized_keys") return [{ path: path.join("."), reason: issue.message }];
      return issue.keys.slice(0, MAX_ISSUES).map((key, at) => {
        const meant = at < MAX_COMPARED ? nearestName(key, openNames(issue)) : undefined;
        const reason = meant === undefined ? unknown : `${unknown}; did you mean ${meant}?`;
        return { path: [...path, shownName(key)].join("."), reason };
      });
    })
    .slice(0, MAX_ISSUES);
  const [first] = shown;
  return {
    issues: shown,
    omitted: countOf(found) - countOf(found.slice(0, MAX_ISSUES)) + countOf(all) - shown.length,
    text: `${first?.path || whole}: ${first?.reason ?? "does not fit"}`,
  };
}

/** The issues of the one alternative that is meant, if the others do not even have the type of the value. */
function expanded(issue: z.core.$ZodIssue): readonly z.core.$ZodIssue[] {
  if (issue.code !== "invalid_union") return [issue];
  const likely = issue.errors.filter(
    (errors) => !errors.some(({ path, code }) => path.length === 0 && code !== "unrecognized_keys"),
  );
  const [only, second] = likely;
  if (only === undefined || second !== undefined) return [issue];
  return only
    .slice(0, MAX_ISSUES)
    .map((one) => ({ ...one, path: [...issue.path, ...one.path] }))
    .flatMap(expanded);
}

const countOf = (issues: readonly z.core.$ZodIssue[]): number =>
  issues.reduce((sum, issue) => sum + (issue.code === "unrecognized_keys" ? issue.keys.length : 1), 0);

/** The `invalid_request` error with these issues. */
export function invalidRequest(error: Misfit, place: Place): ErrandError {
  const { issues, omitted, text } = issuesOf(error, place);
  return new ErrandError("invalid_request", text, {
    details: { issues, ...(omitted > 0 && { issues_omitted: omitted }) },
  });
}
