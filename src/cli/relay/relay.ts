/**
 * `errand relay`: passes an agent's delegations to an A2A server. Limit: one server.
 */
import type { Command } from "commander";
import { Admin } from "../../client/admin.ts";
import { Agent } from "../../client/agent.ts";
import { Delegator } from "../../client/delegator.ts";
import type { Connection } from "../../client/http.ts";
import { configuredProxy, fetchThrough } from "../../client/proxied-fetch.ts";
import { credentialHeaders } from "../../relay/credential-headers.ts";
import type { FetchFunction } from "../../relay/guarded-fetch.ts";
import { LONGEST_PAUSE_MS } from "../../relay/port.ts";
import { relay } from "../../relay/relay.ts";
import { Remote } from "../../relay/remote.ts";
import { NO_CARD, type RemoteError, toRemoteError } from "../../relay/remote-error.ts";
import { isLoopback } from "../../util/proxy.ts";
import { type Cli, connect, examples, type GlobalOptions } from "../context.ts";
import { cliError, usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { agentName, wholeBetween } from "../input/arguments.ts";
import { readCredentials } from "../input/server-credentials.ts";
import { note } from "../show/output.ts";
import { interruptible } from "../signals.ts";
import {
  agentOptions,
  connectForLeases,
  ensureAgent,
  mayLease,
  type WorkerOptions,
  withWorkerOptions,
} from "../work/worker.ts";
import { cancelOrphanedTasks } from "./orphaned-tasks.ts";
import { toOutcome, toPort } from "./port.ts";

interface RelayOptions extends GlobalOptions, WorkerOptions {
  readonly to: string;
  readonly header?: Readonly<Record<string, string>>;
  readonly tokenFile?: string;
  readonly credentialsFile?: string;
  readonly concurrency: number;
}

/** More than for `errand work`: a relay only waits. */
const CONCURRENCY = 8;

const ABOUT = `
The server speaks A2A 1.0 or 0.3 over JSON-RPC or HTTP+JSON; its agent card says which. Each delegation becomes one task
on the server. Status messages of the task become progress, and artifacts are passed on as they arrive. When the task
needs input or authentication (input-required, auth-required), the delegator is asked, and the answer goes to the same
task. Cancels and follow-up messages are passed on, too. The relay stores nothing on disk: restarted here or elsewhere,
it continues the same tasks. Ctrl-C returns the work to the queue, and the next relay continues it.

Credentials for the server are sent only to its origin. Other users of this machine can read command lines: prefer
--token-file, --credentials-file or ERRAND_REMOTE_TOKEN.`;

export function addRelay(program: Command, { host }: Cli): void {
  const command = program
    .command("relay")
    .description("act as an agent: pass each delegation to an A2A server")
    .requiredOption("--agent <name>", "the agent to work for; created if it does not exist", agentName)
    .requiredOption(
      "--to <url>",
      "the URL of the A2A server, or of its agent card (which ends in .json)",
      remoteUrl,
    )
    .option(
      "--header <name: value>",
      "an HTTP header for each request to the server; may be repeated",
      header,
    )
    .option(
      "--token-file <path>",
      "a file with the bearer token for the server; - reads stdin (default: ERRAND_REMOTE_TOKEN)",
    )
    .option(
      "--credentials-file <path>",
      "a JSON file with other credentials for the server (scheme basic or headers); - reads stdin",
    )
    .option("--concurrency <n>", "maximum delegations at once", wholeBetween(1, 1000), CONCURRENCY);
  withWorkerOptions(command)
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        "errand relay --agent scout --to http://127.0.0.1:9999",
        "errand relay --agent scout --to https://a2a.example/agents/scout --token-file ./scout-token",
        "errand relay --agent scout --to http://127.0.0.1:9999/card.json --header 'X-Api-Key: 12' --concurrency 32",
      ),
    )
    .action(async (_options: unknown, command: Command) => {
      await run(host, command.optsWithGlobals<RelayOptions>());
    });
}

async function run(host: CliHost, options: RelayOptions): Promise<void> {
  const headers = await credentials(host, options);
  const remote = new Remote({ url: options.to, headers, fetch: outgoingFetch(host) });
  const connection: Connection = { ...(await connect(host, options)), failFast: false };
  const say = (line: string) => {
    if (!options.quiet && !options.json) void note(host, line).catch(() => undefined);
  };
  const agent = new Agent(
    { ...(await connectForLeases(host, options, connection)), ...agentOptions(host, options) },
    async (work) => toOutcome(work, await relay(toPort(work, say), remote)),
    // The server has already had a task that failed; sending it again would do its work twice.
    { blame: () => "final", tellsErrors: true, longestPauseMs: LONGEST_PAUSE_MS },
  );
  await interruptible(async (signal) => {
    const isOurs = mayLease(
      await ensureAgent(new Admin({ ...connection, failFast: true }), options.agent, signal),
    );
    const { origin } = new URL(options.to);
    await remote.open(signal).catch((error: unknown) => {
      signal.throwIfAborted();
      const failure = toRemoteError(error);
      if (isWrongAddress(failure)) throw unreached(origin, failure);
      // The server may start later, or be away now.
      say(`cannot reach ${origin} yet: ${failure.message}`);
    });
    if (isOurs) say(`relaying for ${options.agent} to ${origin} as ${agent.workerId}; press Ctrl-C to stop.`);
    const done = new AbortController();
    const delegator = new Delegator(connection);
    const watching = cancelOrphanedTasks({
      delegator,
      target: options.agent,
      remote,
      say,
      signal: done.signal,
    });
    await agent.run(signal).finally(() => done.abort());
    await watching;
    signal.throwIfAborted();
  });
}

/** Something answers there, and it is no A2A server that is away or starts. */
function isWrongAddress({ kind, status, pause }: RemoteError): boolean {
  if (status !== undefined) return status < 500 && status !== 408 && status !== 429;
  return kind === "refused" || pause === NO_CARD;
}

const unreached = (origin: string, { message }: RemoteError) =>
  cliError({
    code: "not_a_server",
    category: "CONFIG",
    detail: `cannot relay to ${origin}: ${message}`,
    recovery:
      "Check --to and the credentials. After a start, the relay waits out what answers in the server's place.",
  });

/** The server is called directly, or by ERRAND_EGRESS_PROXY: HTTPS_PROXY is for the way to the broker. */
function outgoingFetch({ env: { egressProxy } }: CliHost): FetchFunction {
  if (egressProxy === undefined) return globalThis.fetch;
  const proxy = configuredProxy(egressProxy, "ERRAND_EGRESS_PROXY");
  return (url, init) =>
    isLoopback(url.hostname) ? globalThis.fetch(url, init) : fetchThrough(proxy, url, init);
}

/** ERRAND_REMOTE_TOKEN is the default; headers win. */
async function credentials(host: CliHost, options: RelayOptions): Promise<Record<string, string>> {
  const { tokenFile, credentialsFile, header: given = {} } = options;
  const isDefault = tokenFile === undefined && credentialsFile === undefined;
  const tokenEnv = isDefault && host.env.remoteToken !== undefined;
  const read = await readCredentials(host, { tokenFile, credentialsFile, tokenEnv });
  return { ...(read && credentialHeaders(read)), ...given };
}

/** Errors show neither the URL nor a header, because both may contain a credential. */
function remoteUrl(value: string): string {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "") return value;
  throw usageError("--to must be an http or https URL without user and password.");
}

function header(value: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [, name, rest] = /^([\w!#$%&'*+.^`|~-]+):([\t\x20-\x7e]+)$/.exec(value) ?? [];
  const text = rest?.trim() ?? "";
  if (name === undefined || text === "") throw usageError("--header must be '<name>: <value>'.");
  return { ...before, [name.toLowerCase()]: text };
}
