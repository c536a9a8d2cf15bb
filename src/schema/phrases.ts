/**
 * What zod finds wrong with a value, in our words, for the schemas that do not say it themselves. They are given with each
 * check (`readAs`): zod's own configuration belongs to the whole process, of which the library is only a part.
 */
import * as z from "zod";
import { isJsonObject } from "./json-object.ts";
import {
  atLeast,
  atMost,
  BOUNDS,
  counted,
  fitsNone,
  MISSING,
  mustBeOneOf,
  mustEqual,
  TYPE_NAMES,
  wrongType,
} from "./wording.ts";

type Raw<Code extends z.core.$ZodIssue["code"]> = Extract<z.core.$ZodRawIssue, { readonly code: Code }>;

/** The types of zod that JSON has. */
const EXPECTED: ReadonlyMap<string, string> = new Map([
  ...Object.entries(TYPE_NAMES),
  ["int", TYPE_NAMES.integer],
  ["record", TYPE_NAMES.object],
  ["tuple", TYPE_NAMES.array],
]);

const FORMATS: ReadonlyMap<string, string> = new Map([
  ["datetime", "must be a time with its zone, such as 2026-01-31T08:00:00Z"],
  ["date", "must be a date, such as 2026-01-31"],
  ["time", "must be a time of day, such as 08:00:00"],
  ["duration", "must be a duration, such as PT5M"],
  ["url", "must be a URL"],
  ["email", "must be an email address"],
  ["base64", "must be base64"],
  ["base64url", "must be base64url"],
  ["ipv4", "must be an IPv4 address"],
  ["ipv6", "must be an IPv6 address"],
  ["json_string", "must be JSON"],
  ["lowercase", "must have no capital letters"],
  ["uppercase", "must have no small letters"],
]);

const UNITS: ReadonlyMap<string, string> = new Map([
  ["string", "character"],
  ["array", "item"],
  ["set", "item"],
  ["map", "member"],
  ["object", "member"],
  ["file", "byte"],
]);

export const phrase: z.core.$ZodErrorMap = (issue) => {
  switch (issue.code) {
    case "invalid_type":
      return ofType(issue);
    case "invalid_value":
      return issue.input === undefined ? MISSING : ofValues(issue.values);
    case "too_big":
      return ofBound(issue, issue.maximum, issue.inclusive === false ? "exclusiveMaximum" : "maximum");
    case "too_small":
      return ofBound(issue, issue.minimum, issue.inclusive === false ? "exclusiveMinimum" : "minimum");
    case "invalid_format":
      return ofFormat(issue);
    case "not_multiple_of":
      return `must be ${BOUNDS.multipleOf} ${issue.divisor}`;
    case "unrecognized_keys":
      noteOpenNames(issue);
      return UNKNOWN_FIELD;
    case "invalid_key":
      return `a member must not have this name: ${issue.issues[0]?.message ?? ""}`;
    case "invalid_element":
      return `an element does not fit: ${issue.issues[0]?.message ?? ""}`;
    case "invalid_union":
      return ofUnion(issue);
    default:
      return ofCustom(issue);
  }
};

export const UNKNOWN_FIELD = "unknown field";

function ofType({ expected, input, inst }: Raw<"invalid_type">): string {
  if (expected === "never" || expected === "void" || expected === "undefined") return "not allowed";
  const isWhole = inst instanceof z.ZodNumberFormat && inst._zod.def.format.includes("int");
  return wrongType([isWhole ? TYPE_NAMES.integer : nameOf(expected)], input);
}

const nameOf = (expected: string): string => EXPECTED.get(expected) ?? `a ${expected}`;

const ofValues = (values: readonly unknown[]): string => {
  const [first, second] = values;
  return second === undefined ? mustEqual(first) : mustBeOneOf(values);
};

function ofBound(
  { origin, exact }: Raw<"too_big"> | Raw<"too_small">,
  limit: number | bigint,
  bound: Exclude<keyof typeof BOUNDS, "multipleOf">,
): string {
  const unit = UNITS.get(origin);
  if (unit === undefined) return `must be ${BOUNDS[bound]} ${limit}`;
  if (exact) return `exactly ${counted(Number(limit), unit)}`;
  return bound.endsWith("aximum") ? atMost(Number(limit), unit) : atLeast(Number(limit), unit);
}

function ofFormat(issue: Raw<"invalid_format">): string {
  const { format } = issue;
  if (format === "starts_with") return `must begin with ${JSON.stringify(issue.prefix)}`;
  if (format === "ends_with") return `must end with ${JSON.stringify(issue.suffix)}`;
  if (format === "includes") return `must contain ${JSON.stringify(issue.includes)}`;
  if (format === "url" && issue.inst instanceof z.ZodURL && issue.inst._zod.def.protocol)
    return "must be an http or https URL";
  if (format === "regex") return `must match ${issue.pattern}`;
  return FORMATS.get(format) ?? `is no ${format}`;
}

function ofCustom({ inst, input }: z.core.$ZodRawIssue): string {
  const isOfObject = inst instanceof z.ZodCustom && inst._zod.def.fn === isJsonObject;
  return isOfObject || input === undefined ? wrongType([TYPE_NAMES.object], input) : "does not fit";
}

function ofUnion(issue: Raw<"invalid_union">): string {
  const { input, errors } = issue;
  if ("options" in issue && Array.isArray(issue.options)) {
    const value =
      typeof input === "object" && input !== null ? Reflect.get(input, String(issue.discriminator)) : null;
    return value === undefined ? MISSING : ofValues(issue.options);
  }
  if (input === undefined) return MISSING;
  if (errors.length === 0) return "fits several alternatives, and must fit exactly one";
  const types = errors.map(([first, second]) =>
    first?.code === "invalid_type" && first.path.length === 0 && !second ? nameOf(first.expected) : undefined,
  );
  const known = types.filter((type) => type !== undefined);
  return known.length === types.length ? wrongType([...new Set(known)], input) : fitsNone(errors.length);
}

/** The names that an object could have besides those it has, by zod's list of those that it must not have. */
const OPEN_NAMES = new WeakMap<readonly string[], readonly string[]>();

function noteOpenNames({ keys, inst, input }: Raw<"unrecognized_keys">): void {
  if (!(inst instanceof z.ZodObject) || typeof input !== "object" || input === null) return;
  OPEN_NAMES.set(
    keys,
    Object.keys(inst.shape).filter((name) => !Object.hasOwn(input, name)),
  );
}

/** The names that may have been meant by the unknown ones. */
export const openNames = ({ keys }: z.core.$ZodIssueUnrecognizedKeys): readonly string[] =>
  OPEN_NAMES.get(keys) ?? [];
