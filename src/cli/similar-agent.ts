/** Suggests the name of an agent that exists, for one that does not. */
import { Admin } from "../client/admin.ts";
import { ErrandApiError } from "../client/errors.ts";
import type { ConnectionOptions } from "../client/http.ts";
import { CliError } from "./failure.ts";
import { recoveryFor } from "./recovery.ts";

/** How many agents are read at most. */
const READ = 500;
const MAX_MISTAKES = 2;

/** Adds the most similar agent to an `agent_unknown`. Returns any other error as it is. */
export async function withSuggestion(
  error: unknown,
  name: string,
  connection: ConnectionOptions,
): Promise<unknown> {
  if (!(error instanceof ErrandApiError) || error.code !== "agent_unknown") return error;
  const similar = await similarAgent(name, connection).catch(() => undefined);
  if (similar === undefined) return error;
  const recovery = `Did you mean ${similar}? ${recoveryFor(error)}`;
  return new CliError({ ...error.problem, recovery }, { cause: error });
}

async function similarAgent(name: string, connection: ConnectionOptions): Promise<string | undefined> {
  let best: string | undefined;
  let fewest = Math.min(MAX_MISTAKES, Math.floor(name.length / 2)) + 1;
  let read = 0;
  for await (const agent of new Admin({ ...connection, retryForMs: 0 }).agents()) {
    const mistakes = distance(name, agent.name);
    if (mistakes < fewest) [best, fewest] = [agent.name, mistakes];
    read += 1;
    if (read >= READ) break;
  }
  return best;
}

/** The number of letters to insert, delete, replace or swap with their neighbor. */
export function distance(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > MAX_MISTAKES) return Number.POSITIVE_INFINITY;
  let before: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (let row = 1; row <= one.length; row += 1) {
    const next = [row];
    for (let column = 1; column <= other.length; column += 1) {
      const isSame = one[row - 1] === other[column - 1];
      const isSwap =
        row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      next[column] = Math.min(
        (last[column] ?? 0) + 1,
        (next[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
        isSwap ? (before[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    before = last;
    last = next;
  }
  return last[other.length] ?? Number.POSITIVE_INFINITY;
}
