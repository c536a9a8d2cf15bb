/** Shared by all commands: the global options, the connection to the broker, and the exit code. */
import type { Command } from "commander";
import type { ErrandApiError } from "../client/errors.ts";
import type { Connection } from "../client/http.ts";
import { KnownBroker } from "../client/known-broker.ts";
import { discover } from "./discover.ts";
import type { CliHost } from "./host.ts";
import { nodeTransport } from "./node-transport.ts";
import { note, oneLine } from "./show/output.ts";
import { withStorageReason } from "./storage-reason.ts";

export interface GlobalOptions {
  readonly json?: boolean;
  readonly url?: string;
  readonly token?: string;
}

/** Each function that adds a command to the program gets this. `end` sets the exit code. */
export interface Cli {
  readonly host: CliHost;
  readonly end: (exitCode: number) => void;
  /** Of several short ids, those that stand for no delegation, with the error of each. */
  readonly unknownIds: ReadonlyMap<string, ErrandApiError>;
}

export function addGlobalOptions(program: Command): Command {
  return program
    .option("--json", "print JSON, one object per line; errors as problem JSON on stderr")
    .option("--url <url>", "the broker's URL (default: ERRAND_URL, then the local broker)")
    .option("--token <token>", "the bearer token (default: ERRAND_TOKEN, then the local operator token)");
}

/** How long a command retries once it has reached the broker. Before that, it fails at once. */
const RETRY_FOR_MS = 60_000;
/** Shorter for reads: a person is waiting for the output, and a failed read changes nothing. */
const RETRY_READS_FOR_MS = 5_000;

/** For a command that only reads. */
export const connectToRead = (host: CliHost, options: GlobalOptions): Promise<Connection> =>
  connect(host, options, RETRY_READS_FOR_MS);

/** Reports the first retry, so that the terminal is not silent. */
export async function connect(
  host: CliHost,
  options: GlobalOptions,
  retryForMs = RETRY_FOR_MS,
): Promise<Connection> {
  const target = await discover(host.env, options);
  let reported = options.json === true;
  const howLong = Number.isFinite(retryForMs) ? ` for up to ${retryForMs / 1000} s` : "";
  const onRetry = (error: ErrandApiError) => {
    if (reported) return;
    reported = true;
    void withStorageReason(error, target.url)
      .then(({ message }) => note(host, `${oneLine(message).replace(/\.$/, "")}; retrying${howLong}.`))
      .catch(() => undefined);
  };
  return {
    ...target,
    known: new KnownBroker(),
    transport: nodeTransport(),
    failFast: true,
    retryForMs,
    onRetry,
  };
}

export function examples(...lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}`).join("\n")}`;
}
