/**
 * From anything thrown to what is said and the exit code. Limit: exit codes are the error table's
 * (src/schema/errors.ts); only signals have codes of their own.
 */
import { CommanderError } from "commander";
import { ErrandApiError, localError } from "../client/errors.ts";
import type { Delegation } from "../schema/delegation.ts";
import { CATEGORIES, type Category } from "../schema/errors.ts";
import { recoveryFor } from "./recovery.ts";

/** Wrong words on the command line: exit 64. The command's own help is named behind `recovery`. */
export function usageError(detail: string, recovery = ""): ErrandApiError {
  return localError({ code: "usage", category: "PROTOCOL", detail, recovery });
}

/** Stopped by a signal: 128 and its number, as shells count. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
  readonly exitCode: number;

  constructor(signal: keyof typeof SIGNALS) {
    super(`stopped by ${signal}`);
    this.exitCode = SIGNALS[signal];
  }
}
export const SIGNALS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

/** Whoever read stdout has gone away, as in `errand watch | head -1`. */
const SIGPIPE_EXIT = 141;

export function exitCodeOf(category: Category): number {
  return CATEGORIES[category].exit;
}

/** Its recovery speaks of this program already. */
export class InOurWords extends ErrandApiError {}

export interface Failure {
  readonly exitCode: number;
  /** Nothing to say: help was shown, or a signal or a closed pipe ended it. */
  readonly error?: ErrandApiError;
}

/**
 * `command` is who was asked for, as far as it was understood: `errand agent put`; `id` the delegation that it is about,
 * if it is about one.
 */
export function toFailure(thrown: unknown, command: string, id?: string): Failure {
  if (thrown instanceof ErrandApiError) {
    const error = thrown.code === "usage" ? withHelp(thrown, command) : inOurWords(thrown, id);
    return { exitCode: exitCodeOf(error.category), error };
  }
  if (thrown instanceof Interrupted) return { exitCode: thrown.exitCode };
  if (thrown instanceof CommanderError) return fromCommander(thrown, command);
  if (isClosedPipe(thrown)) return { exitCode: SIGPIPE_EXIT };
  const detail = `internal error: ${thrown instanceof Error ? thrown.message : String(thrown)}`;
  const recovery = "This is a bug of errand; please report it with the command you ran.";
  const error = localError({ code: "internal", category: "INTERNAL", detail, recovery }, thrown);
  return { exitCode: exitCodeOf("INTERNAL"), error };
}

/** Adds the delegation's id to an error, for a command that was given several ids. */
export function naming(error: ErrandApiError, id: string): ErrandApiError {
  const { problem } = inOurWords(error, id);
  const detail = problem.detail.includes(id) ? problem.detail : `${id}: ${problem.detail}`;
  return new InOurWords({ ...problem, detail, delegation_id: id }, { cause: error });
}

/** From errors that pass by themselves to errors in Errand itself. */
const WORST_LAST: readonly Category[] = [
  "TRANSPORT",
  "TIMEOUT",
  "UPSTREAM",
  "PROTOCOL",
  "CONFIG",
  "AUTH",
  "INTERNAL",
];

/** The exit code of the worst; 0 when there is none. */
export function worstExitCode(errors: readonly ErrandApiError[]): number {
  const ranks = errors.map(({ category }) => WORST_LAST.indexOf(category));
  const worst = WORST_LAST[Math.max(-1, ...ranks)];
  return worst === undefined ? 0 : exitCodeOf(worst);
}

/** A delegation that ended badly, as the error that a command ends with. */
export function endedBadly({ id, state, target, error }: Delegation): ErrandApiError {
  const recovery = error ? recoveryFor(error) : "See 'errand get <id>'.";
  const { problem } = localError({
    code: error?.code ?? state,
    category: error?.category ?? "UPSTREAM",
    detail: `${id} ${state}${error ? `: ${error.message}` : ""}`,
    recovery: recovery.replaceAll("<id>", id).replaceAll("<agent>", target),
    retryable: error?.retryable ?? false,
  });
  return new InOurWords(problem);
}

function isClosedPipe(thrown: unknown): boolean {
  if (!(thrown instanceof Error) || !("code" in thrown)) return false;
  return thrown.code === "EPIPE" || thrown.code === "ERR_STREAM_DESTROYED";
}

function inOurWords(error: ErrandApiError, given: string | undefined): ErrandApiError {
  if (error instanceof InOurWords) return error;
  const { delegation_id: id = given } = error.problem;
  const general = recoveryFor(error);
  const recovery = id === undefined ? general : general.replaceAll("<id>", id);
  if (recovery === error.recovery) return error;
  return new ErrandApiError({ ...error.problem, recovery }, { cause: error.cause });
}

function withHelp(error: ErrandApiError, command: string): ErrandApiError {
  return usageError(error.message, `${error.recovery} See '${command} --help'.`.trim());
}

function fromCommander(thrown: CommanderError, command: string): Failure {
  if (thrown.exitCode === 0) return { exitCode: 0 };
  // A bare `errand` or `errand agent`: the help that was shown says it all.
  if (thrown.code === "commander.help") return { exitCode: exitCodeOf("PROTOCOL") };
  const said = thrown.message
    .replace(/^error: /, "")
    .replaceAll("\n", " ")
    .replace(/\.$/, "");
  return { exitCode: exitCodeOf("PROTOCOL"), error: withHelp(usageError(said), command) };
}
