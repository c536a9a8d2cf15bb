/**
 * What every command shares: the global options, their broker, and how an action ends in an exit code.
 * Limit: no command's own logic.
 */
import { type Command, InvalidArgumentError } from "commander";
import type { z } from "zod";
import type { ErrandApiError } from "../client/errors.ts";
import type { ConnectionOptions } from "../client/http.ts";
import { agentNameSchema } from "../schema/values.ts";
import { discover } from "./discover.ts";
import type { CliHost } from "./host.ts";
import { note, oneLine } from "./show/output.ts";

export interface GlobalOptions {
  readonly json?: boolean;
  readonly url?: string;
  readonly token?: string;
}

/** A command's module adds itself to the program; `end` takes the exit code of an action. */
export interface Cli {
  readonly host: CliHost;
  readonly end: (exitCode: number) => void;
}

export function addGlobalOptions(program: Command): Command {
  return program
    .option("--json", "print JSON, one object a line; errors as problem JSON on stderr")
    .option("--url <url>", "the broker (default: ERRAND_URL, then the local broker)")
    .option("--token <token>", "the bearer token (default: ERRAND_TOKEN, then the local operator's)");
}

/**
 * How long a command bears with a broker that went away while it worked. One that is not there at all is
 * told at once.
 */
const PATIENCE_MS = 60_000;

/** The first repeat is told, so that nobody sits before a silent terminal. */
export async function connect(host: CliHost, options: GlobalOptions): Promise<ConnectionOptions> {
  const target = await discover(host.env, options);
  let told = options.json === true;
  const onRetry = (error: ErrandApiError) => {
    if (told) return;
    told = true;
    const why = oneLine(error.message).replace(/\.$/, "");
    void note(host, `${why}; trying again for up to ${PATIENCE_MS / 1000} s.`).catch(() => undefined);
  };
  return { ...target, failFast: true, retryForMs: PATIENCE_MS, onRetry };
}

/** Checked here, so that a mistake is told before anything is sent. */
export function valid<T>(schema: z.ZodType<T>): (value: string) => T {
  return (value) => {
    const parsed = schema.safeParse(value);
    if (parsed.success) return parsed.data;
    throw new InvalidArgumentError(`${parsed.error.issues[0]?.message ?? "that is not valid"}.`);
  };
}

export const agentName = valid(agentNameSchema);

/** Only what cannot be one is told here; which ones there are the broker knows. */
export function delegationId(value: string): string {
  if (/^dlg_\w+$/.test(value)) return value;
  throw new InvalidArgumentError("A delegation's id has the form dlg_…; 'errand list' shows them.");
}

/** For an argument that takes several ids. */
export const delegationIds = (value: string, before: readonly string[] = []): readonly string[] => [
  ...before,
  delegationId(value),
];

export function positive(value: string): number {
  const number = Number(value);
  if (!(number > 0 && Number.isFinite(number))) throw new InvalidArgumentError("It takes a positive number.");
  return number;
}

export function wholeBetween(min: number, max: number): (value: string) => number {
  return (value) => {
    const number = /^\d+$/.test(value) ? Number(value) : Number.NaN;
    if (number >= min && number <= max) return number;
    throw new InvalidArgumentError(`It takes a whole number from ${min} to ${max}.`);
  };
}

/** `--meta a=1 --meta b=2` */
export function keyValue(
  value: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const [, key, rest] = /^([^=]+)=(.*)$/s.exec(value) ?? [];
  if (key === undefined || rest === undefined) throw new InvalidArgumentError("It takes <key>=<value>.");
  return { ...before, [key]: rest };
}

export function errorCode(value: string): string {
  if (/^[a-z][a-z0-9_]{0,63}$/.test(value)) return value;
  throw new InvalidArgumentError("A code is snake_case, for example attempts_exhausted.");
}

export function examples(...lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}`).join("\n")}`;
}
