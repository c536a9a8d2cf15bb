/** Parsers for arguments and options. They refuse a mistake before anything is sent. */
import { type Command, InvalidArgumentError, Option } from "commander";
import type * as z from "zod";
import { InexactNumberError, parseExact } from "../../schema/exact-numbers.ts";
import { issuesOf, readAs } from "../../schema/issues.ts";
import { SCHEDULE_ID } from "../../schema/schedule.ts";
import { SUBSCRIPTION_ID } from "../../schema/subscription.ts";
import { agentNameSchema } from "../../schema/values.ts";

/** Returns a parser that checks a value by a schema of the API. */
export function valid<T>(schema: z.ZodType<T>): (value: string) => T {
  return (value) => {
    const { success, data, error } = readAs(schema, value);
    if (success) return data;
    throw new InvalidArgumentError(
      `${issuesOf(error, { whole: "it" }).issues[0]?.reason ?? "it is not valid"}.`,
    );
  };
}

const LISTED = new WeakMap<object, readonly string[]>();

/** Marks the parser of an option whose value is these words, separated by commas, so that a shell completes them. */
export function separated<T extends object>(words: readonly string[], parser: T): T {
  LISTED.set(parser, words);
  return parser;
}

/** The words of a parser that {@link separated} has marked. */
export const separatedWords = (parser: unknown): readonly string[] | undefined =>
  typeof parser === "function" ? LISTED.get(parser) : undefined;

/** How the principal of a token begins. */
export const PRINCIPALS = ["agent:", "caller:", "approver:", "viewer:"] as const;

export const agentName = valid(agentNameSchema);

/** For the help of arguments that {@link delegationId} and {@link delegationIds} parse. */
export const DELEGATION = "the delegation: its id, a unique beginning of it, or @last";
export const DELEGATIONS = "the delegations: ids, or unique beginnings of them";

/**
 * Checks only the form: a full id, its beginning (4 characters, and `dlg_…_` before them or not), or `@last`. Before the command runs,
 * short-id.ts replaces a short id by the full one. The broker checks whether the delegation exists.
 */
export function delegationId(value: string): string {
  const isHead = /^dlg_[0-9a-z]{1,3}_[0-9a-z]{0,3}$/.test(value);
  if (!isHead && /^(?:dlg_\w+|[0-9a-z]{4,26}|@last)$/.test(value)) return value;
  throw new InvalidArgumentError(
    "Pass the id of a delegation (dlg_…), its beginning (at least 4 characters, with or without the dlg_0_), or @last; 'errand list' shows ids.",
  );
}

/** For an argument with several ids. */
export const delegationIds = (value: string, before: readonly string[] = []): readonly string[] => [
  ...before,
  delegationId(value),
];

export function wholeBetween(min: number, max: number): (value: string) => number {
  return (value) => {
    const number = /^\d+$/.test(value) ? Number(value) : Number.NaN;
    if (number >= min && number <= max) return number;
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  };
}

/** For options such as `--meta a=1 --meta b=2`. */
export function keyValue(
  value: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const [, key, rest] = /^([^=]+)=(.*)$/s.exec(value) ?? [];
  if (key === undefined || rest === undefined) throw new InvalidArgumentError("It must be <key>=<value>.");
  return { ...before, [key]: rest };
}

export function errorCode(value: string): string {
  if (/^[a-z][a-z0-9_]{0,63}$/.test(value)) return value;
  throw new InvalidArgumentError("An error code is snake_case, for example attempts_exhausted.");
}

export function json(value: string): unknown {
  try {
    return parseExact(value);
  } catch (error) {
    if (error instanceof InexactNumberError) throw new InvalidArgumentError(`In it, ${error.message}.`);
    throw new InvalidArgumentError("It must be JSON; put a string in double quotes.");
  }
}

/** For a command that changes settings: what is not given stays, so its help names no defaults. */
export function withoutDefaults(command: Command): Command {
  for (const option of command.options)
    option.description = option.description.replace(/ \(default:? [^()]+\)$/, "");
  return command;
}

/**
 * The options of backup, restore and migrate that say where the data of a broker is. `--data-dir` wins over ERRAND_REDIS_URL, so both options together would be
 * ambiguous.
 */
export function addPlaceOptions(command: Command, dataDir: string, redisUrl: string): Command {
  return command
    .addOption(new Option("--data-dir <folder>", dataDir).conflicts("redisUrl").argParser(notEmpty))
    .addOption(new Option("--redis-url <url>", redisUrl).argParser(notEmpty));
}

/** An unset variable of a script must not select the default place. */
export function notEmpty(text: string): string {
  if (text === "") throw new InvalidArgumentError("It is empty.");
  return text;
}

/** How many characters follow the head of an id such as `sub_…`. */
const ID_CHARS = 26;

/** Of the beginning of an id, it says how much is missing. */
export function wrongId(value: string, head: string, what: string, list: string): InvalidArgumentError {
  const [, rest] = /^[a-z]{3}_([0-9a-z]+)…?$/.exec(value) ?? [];
  const missing = rest !== undefined && value.startsWith(head) ? ID_CHARS - rest.length : 0;
  const lacks = missing > 0 ? ` It lacks ${missing} character${missing === 1 ? "" : "s"}.` : "";
  return new InvalidArgumentError(`Pass the whole id of ${what} (${head}…); '${list}' shows ids.${lacks}`);
}

/** What the argument is. */
export const SUBSCRIPTION = "the subscription's id, from 'errand notify list'";

export function subscriptionId(value: string): string {
  if (SUBSCRIPTION_ID.test(value)) return value;
  throw wrongId(value, "sub_", "a subscription", "errand notify list");
}

export const SCHEDULE = "the schedule's id, from 'errand schedule list'";

export function scheduleId(value: string): string {
  if (SCHEDULE_ID.test(value)) return value;
  throw wrongId(value, "sch_", "a schedule", "errand schedule list");
}
