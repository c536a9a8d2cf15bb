/** Shared by `errand work` and `errand relay`: options, and the creation of the agent. */
import { type Command, InvalidArgumentError, Option } from "commander";
import type { Admin } from "../../client/admin.ts";
import { ErrandApiError } from "../../client/errors.ts";
import type { Connection } from "../../client/http.ts";
import type { Agent as AgentInfo } from "../../schema/agent.ts";
import { connect, type GlobalOptions } from "../context.ts";
import type { CliHost } from "../host.ts";
import { duration } from "../input/duration.ts";
import { workLog } from "./log.ts";

/** A command has 5 s between SIGTERM and SIGKILL; then its lease is released. A relay gets the same time. */
const STOP_WITHIN_SECONDS = 8;

export interface WorkerOptions {
  readonly agent: string;
  readonly lease?: number;
  readonly once?: boolean;
  readonly exitWhenIdle?: number;
  readonly workerId?: string;
  readonly concurrency?: number;
  readonly keepRunning?: boolean;
  readonly quiet?: boolean;
  readonly json?: boolean;
}

/** Adds the options that both commands have. Their --agent and --concurrency differ. */
export function withWorkerOptions(command: Command): Command {
  return command
    .option(
      "--lease <duration>",
      "how long a lease lasts without a heartbeat (default: the agent's setting)",
      duration,
    )
    .option("--once", "stop after replying to one delegation")
    .addOption(
      new Option(
        "--exit-when-idle [duration]",
        "exit with status 0 when no work came for this long (default: as soon as none waits)",
      )
        .preset("0")
        .argParser((text: string) => (text === "0" ? 0 : duration(text))),
    )
    .option(
      "--worker-id <id>",
      "the name of this worker (default: host name, process id and a random part)",
      workerId,
    )
    .option("--quiet", "print only errors");
}

/**
 * Converts the common options to those of the library's agent, without the connection. `mayKeepRunning`: the command has the
 * option --keep-running.
 */
export const agentOptions = (host: CliHost, options: WorkerOptions, { mayKeepRunning = false } = {}) => ({
  // ensureAgent() has reached the broker by then.
  failFast: false,
  agent: options.agent,
  concurrency: options.concurrency,
  leaseSeconds: options.lease,
  workerId: options.workerId,
  once: options.once,
  stopWhenIdleSeconds: options.exitWhenIdle,
  keepRunning: options.keepRunning,
  stopWithinSeconds: STOP_WITHIN_SECONDS,
  onEvent: workLog(host, { ...options, mayKeepRunning }),
});

/** The connection for what a lease needs: its files are loaded and sent for as long as it lasts. */
export const connectForLeases = async (
  host: CliHost,
  options: GlobalOptions,
  { known }: Connection,
): Promise<Connection> => ({ ...(await connect(host, options, Number.POSITIVE_INFINITY)), known });

/** Creates the agent with default settings if it does not exist. */
export async function ensureAgent(admin: Admin, name: string, signal: AbortSignal): Promise<AgentInfo> {
  return admin.getAgent(name, { signal }).catch((error: unknown) => {
    if (!(error instanceof ErrandApiError) || error.code !== "agent_unknown") throw error;
    return admin.putAgent(name, {}, { signal });
  });
}

/**
 * Whether the token may lease the agent's work; if not, the broker's refusal of the first lease says why. The broker shows
 * limits only to principals that may lease.
 */
export const mayLease = ({ limits }: AgentInfo): boolean => limits !== undefined;

function workerId(value: string): string {
  if (/^[\x21-\x7e]{1,128}$/.test(value)) return value;
  throw new InvalidArgumentError("It must be 1 to 128 printable ASCII characters without spaces.");
}
