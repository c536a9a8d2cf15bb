/** Runs a command for several delegations, one after another. A refusal of one does not stop the others. */
import { ErrandApiError } from "../../client/errors.ts";
import type { Cli, GlobalOptions } from "../context.ts";
import { exitCodeFor, nameDelegation, worstExitCode } from "../failure.ts";
import { note, printError } from "../show/output.ts";
import { interruptible } from "../signals.ts";

/** Whether the error concerns only this delegation, so that the others can proceed. */
export const concernsOne = (error: unknown): error is ErrandApiError =>
  error instanceof ErrandApiError && ["PROTOCOL", "UPSTREAM"].includes(error.category);

/** Throws the error of a short id that matches no delegation. */
export function throwIfUnknown(unknownIds: Cli["unknownIds"], id: string): void {
  const error = unknownIds.get(id);
  if (error) throw error;
}

/** With one id, throws its error. With several, prints each error; the most serious one sets the exit code. */
export async function forEachId(
  { host, end, unknownIds }: Cli,
  given: readonly string[],
  { json = false }: GlobalOptions,
  run: (id: string, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const ids = [...new Set(given)];
  const codes: number[] = [];
  await interruptible(async (signal) => {
    for (const id of ids) {
      try {
        throwIfUnknown(unknownIds, id);
        await run(id, signal);
      } catch (error) {
        if (ids.length === 1 || !(error instanceof ErrandApiError)) throw error;
        if (!concernsOne(error)) throw nameDelegation(error, id);
        codes.push(exitCodeFor(error));
        await printError(host, nameDelegation(error, id), json);
      }
    }
  });
  if (codes.length > 0 && !json) await note(host, `${codes.length} of ${ids.length} were refused.`);
  if (codes.length > 0) end(worstExitCode(codes));
}
