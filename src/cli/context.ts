/**
 * What every command shares: the global options, their broker, and how an action ends in an exit code.
 * Limit: no command's own logic.
 */
import { type Command, InvalidArgumentError } from "commander";
import type { ConnectionOptions } from "../client/http.ts";
import { agentNameSchema } from "../schema/values.ts";
import { discover } from "./discover.ts";
import type { CliHost } from "./host.ts";

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

export async function connect(host: CliHost, options: GlobalOptions): Promise<ConnectionOptions> {
  const target = await discover(host.env, options);
  return { ...target, failFast: true, retryForMs: PATIENCE_MS };
}

export function agentName(value: string): string {
  const parsed = agentNameSchema.safeParse(value);
  if (!parsed.success) throw new InvalidArgumentError(parsed.error.issues[0]?.message ?? "not an agent name");
  return value;
}

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

export function examples(...lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}`).join("\n")}`;
}
