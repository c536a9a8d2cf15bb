/** Suggests the name of an agent that exists, for one that does not. */
import { ErrandApiError } from "../client/errors.ts";
import type { ConnectionOptions } from "../client/http.ts";
import { Closest } from "../util/similar.ts";
import { CliError } from "./failure.ts";
import { recoveryFor } from "./recovery.ts";

/** How many agents are read at most. */
const READ = 500;

/** Adds the most similar agent to an `agent_unknown`. Returns any other error as it is. */
export async function withSuggestion<T>(
  error: T,
  name: string,
  connection: ConnectionOptions,
): Promise<T | CliError> {
  if (!(error instanceof ErrandApiError) || error.code !== "agent_unknown") return error;
  if (error.recovery.startsWith("Did you mean")) return error;
  const similar = await similarAgent(name, connection).catch(() => undefined);
  if (similar === undefined) return error;
  const recovery = `Did you mean ${similar}? ${recoveryFor(error)}`;
  return new CliError({ ...error.problem, recovery }, { cause: error });
}

/** The name of an agent that exists and is most similar to this one. */
export async function similarAgent(name: string, connection: ConnectionOptions): Promise<string | undefined> {
  // Most commands need no other names.
  const { Admin } = await import("../client/admin.ts");
  const closest = new Closest(name);
  let read = 0;
  for await (const agent of new Admin({ ...connection, retryForMs: 0 }).agents()) {
    closest.consider(agent.name);
    read += 1;
    if (read >= READ) break;
  }
  return closest.best;
}
