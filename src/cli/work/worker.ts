/** Shared by the commands that work for an agent: their options, and the agent's creation. Limit: no work is done. */
import { type Command, InvalidArgumentError } from "commander";
import type { Admin } from "../../client/admin.ts";
import { ErrandApiError } from "../../client/errors.ts";
import { positive } from "../context.ts";

export interface WorkerOptions {
  readonly agent: string;
  readonly lease?: number;
  readonly once?: boolean;
  readonly workerId?: string;
  readonly quiet?: boolean;
}

/** How any of them leases, and what it says; the agent and how many at once are told differently. */
export function withWorkerOptions(command: Command): Command {
  return command
    .option(
      "--lease <seconds>",
      "how long a lease lasts without a heartbeat (default: the agent's)",
      positive,
    )
    .option("--once", "stop after one delegation was replied to")
    .option(
      "--worker-id <id>",
      "the name of this worker (default: host, process id and a random part)",
      workerId,
    )
    .option("--quiet", "say nothing but errors");
}

/** Made with its defaults if there is none. Whether its work is handed to us: the broker's refusal then says why not. */
export async function ensureAgent(admin: Admin, name: string, signal: AbortSignal): Promise<boolean> {
  const agent = await admin.getAgent(name, { signal }).catch((error: unknown) => {
    if (!(error instanceof ErrandApiError) || error.code !== "agent_unknown") throw error;
    return admin.putAgent(name, {}, { signal });
  });
  // Shown to those alone who may lease.
  return agent.limits !== undefined;
}

function workerId(value: string): string {
  if (/^[\x21-\x7e]{1,128}$/.test(value)) return value;
  throw new InvalidArgumentError("It takes 1 to 128 printable ASCII characters without spaces.");
}
