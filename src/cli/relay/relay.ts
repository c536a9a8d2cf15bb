/**
 * `errand relay`: an ordinary A2A server works off an agent's delegations. Limit: one server; what it does with a task
 * is its own.
 */
import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { Admin } from "../../client/admin.ts";
import { Agent } from "../../client/agent.ts";
import { Delegator } from "../../client/delegator.ts";
import type { ConnectionOptions } from "../../client/http.ts";
import { relay } from "../../relay/relay.ts";
import { Remote } from "../../relay/remote.ts";
import { toRemoteError } from "../../relay/remote-error.ts";
import { agentName, type Cli, connect, examples, type GlobalOptions, wholeBetween } from "../context.ts";
import { usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { note } from "../show/output.ts";
import { interruptible } from "../signals.ts";
import { workLog } from "../work/log.ts";
import { ensureAgent, type WorkerOptions, withWorkerOptions } from "../work/worker.ts";
import { watchEnds } from "./ends.ts";
import { toOutcome, toPort } from "./port.ts";

interface RelayOptions extends GlobalOptions, WorkerOptions {
  readonly to: string;
  readonly header?: Readonly<Record<string, string>>;
  readonly tokenFile?: string;
  readonly concurrency: number;
}

/** It waits for others' work and does none of its own. */
const CONCURRENCY = 8;
const STOP_WITHIN_SECONDS = 8;

const ABOUT = `
The server speaks A2A 1.0 or 0.3, by JSON-RPC or HTTP+JSON; which, says its agent card. Each delegation becomes one
task there: what it says is progress, its artifacts are passed on as they come, what it asks (input-required,
auth-required) is asked of the delegator, and the answer goes into the same task. A cancel is passed on, follow-ups
too. The relay keeps nothing on disk: killed and started again, here or elsewhere, it goes on with the same tasks.
Ctrl-C gives the work back, and the next relay goes on with it.

Credentials for the server go to its own origin alone. On a command line other users of the machine can read them:
prefer --token-file, or ERRAND_REMOTE_TOKEN.
`;

export function addRelay(program: Command, { host }: Cli): void {
  const command = program
    .command("relay")
    .description("be an agent: hand each delegation to an A2A server")
    .requiredOption(
      "--agent <name>",
      "whose work to hand on; the agent is created if there is none",
      agentName,
    )
    .requiredOption("--to <url>", "the A2A server, or its agent card when it ends in .json", remoteUrl)
    .option("--header <name: value>", "sent to the server with each request; may be repeated", header)
    .option(
      "--token-file <file>",
      "a file with the bearer token for the server (default: ERRAND_REMOTE_TOKEN)",
    )
    .option("--concurrency <n>", "how many at once", wholeBetween(1, 1000), CONCURRENCY);
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
  const remote = new Remote({ url: options.to, headers });
  const connection: ConnectionOptions = { ...(await connect(host, options)), failFast: false };
  const say = (line: string) => {
    if (!options.quiet && !options.json) void note(host, line).catch(() => undefined);
  };
  const agent = new Agent(
    {
      ...connection,
      agent: options.agent,
      concurrency: options.concurrency,
      leaseSeconds: options.lease,
      workerId: options.workerId,
      once: options.once,
      stopWithinSeconds: STOP_WITHIN_SECONDS,
      onEvent: workLog(host, options),
    },
    async (work) => toOutcome(work, await relay(toPort(work, say), remote)),
  );
  await interruptible(async (signal) => {
    const isOurs = await ensureAgent(new Admin({ ...connection, failFast: true }), options.agent, signal);
    const { origin } = new URL(options.to);
    if (isOurs) say(`relaying for ${options.agent} to ${origin} as ${agent.workerId}; Ctrl-C stops.`);
    // A wrong URL is told now, and not with the first work; a server may also be started later.
    remote.open(signal).catch((error: unknown) => {
      if (!signal.aborted) say(`${origin} cannot be relayed to yet: ${toRemoteError(error).message}`);
    });
    const done = new AbortController();
    const delegator = new Delegator(connection);
    const watching = watchEnds({ delegator, target: options.agent, remote, say, signal: done.signal });
    await agent.run(signal).finally(() => done.abort());
    await watching;
    signal.throwIfAborted();
  });
}

async function credentials(host: CliHost, options: RelayOptions): Promise<Record<string, string>> {
  const { tokenFile, header: given = {} } = options;
  const token = tokenFile === undefined ? host.env.remoteToken : await tokenIn(tokenFile);
  return { ...(token !== undefined && { authorization: `Bearer ${token}` }), ...given };
}

async function tokenIn(file: string): Promise<string> {
  const text = await readFile(file, "utf8").catch(() => {
    throw usageError(`cannot read the token file ${file}`, "Give a file that this user may read.");
  });
  const token = text.trim();
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw usageError(`the token file ${file} holds no token`, "It takes one line of printable characters.");
}

/** Like the headers, never shown when it is wrong: it may hold a credential. */
function remoteUrl(value: string): string {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "") return value;
  throw usageError("--to takes an http or https URL, without user and password.");
}

function header(value: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [, name, rest] = /^([\w!#$%&'*+.^`|~-]+):([\t\x20-\x7e]+)$/.exec(value) ?? [];
  const said = rest?.trim() ?? "";
  if (name === undefined || said === "") throw usageError("--header takes '<name>: <value>'.");
  return { ...before, [name.toLowerCase()]: said };
}
