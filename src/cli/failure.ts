/**
 * Turns anything thrown into an error message and an exit code. Exit codes come from the error table
 * (schema/errors.ts), except for signals.
 */
import { CommanderError } from "commander";
import { ErrandApiError, type LocalProblem, localError } from "../client/errors.ts";
import type { Delegation } from "../schema/delegation.ts";
import { CATEGORIES, type Category, ERRORS, isErrorCode } from "../schema/errors.ts";
import { byOtherName, isOtherName, isSpelledLike } from "./other-names.ts";
import { recoveryFor } from "./recovery.ts";

/** An error for a mistake on the command line (exit code 64). `recovery` is later completed by a reference to the help. */
export function usageError(detail: string, recovery = ""): ErrandApiError {
  return localError({ code: "usage", category: "PROTOCOL", detail, recovery });
}

/** Stopped by a signal. The exit code is 128 plus its number, as in shells. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
  readonly exitCode: number;

  constructor(signal: keyof typeof SIGNALS) {
    super(`stopped by ${signal}`);
    this.exitCode = SIGNALS[signal];
  }
}
export const SIGNALS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

/** The reader of stdout has gone, as in `errand watch | head -1`. */
const SIGPIPE_EXIT = 141;

export function exitCodeOf(category: Category): number {
  return CATEGORIES[category].exit;
}

/** For every 404, whatever its category. */
const NOT_FOUND_EXIT = 66;
/** The wait ended because the agent asks a question. */
const ASKS_EXIT = 79;

/** An agent's own error code may be any word, so the code alone does not decide. */
export function exitCodeFor({ status, code, category, details }: ErrandApiError): number {
  if (status === 404) return NOT_FOUND_EXIT;
  const asks = code === "input_required" || code === "auth_required";
  return asks && details?.interrupt !== undefined ? ASKS_EXIT : exitCodeOf(category);
}

/** An error whose recovery is already written for users of the CLI. */
export class CliError extends ErrandApiError {}

/** A {@link CliError} that the broker did not send. */
export const cliError = (local: LocalProblem): CliError => new CliError(localError(local).problem);

export interface Failure {
  readonly exitCode: number;
  /** Absent after help, a signal or a closed pipe. */
  readonly error?: ErrandApiError;
}

/**
 * `command` is the command that was recognized, such as `errand agent put`; `id` is the delegation in its first argument,
 * if any.
 */
export function toFailure(thrown: unknown, command: string, id?: string): Failure {
  if (thrown instanceof ErrandApiError) {
    const error = thrown.code === "usage" ? withHelp(thrown, command) : forCli(thrown, id);
    return { exitCode: exitCodeFor(error), error };
  }
  if (thrown instanceof Interrupted) return { exitCode: thrown.exitCode };
  if (thrown instanceof CommanderError) return fromCommander(thrown, command);
  if (isClosedPipe(thrown)) return { exitCode: SIGPIPE_EXIT };
  const unwritten = outputFailed(thrown, "the output", command);
  if (unwritten) return { exitCode: exitCodeOf("CONFIG"), error: unwritten };
  const detail = `internal error: ${thrown instanceof Error ? thrown.message : String(thrown)}`;
  const recovery = "This is a bug in errand; please report it with the command that you ran.";
  const error = localError({ code: "internal", category: "INTERNAL", detail, recovery }, thrown);
  return { exitCode: exitCodeOf("INTERNAL"), error };
}

/** Adds the delegation's id to an error of a command with several ids. */
export function nameDelegation(error: ErrandApiError, id: string): ErrandApiError {
  const { problem } = forCli(error, id);
  const detail = problem.detail.includes(id) ? problem.detail : `${id}: ${problem.detail}`;
  return new CliError({ ...problem, detail, delegation_id: id }, { cause: error });
}

/** The most serious first: errors of Errand itself, errors that the user must fix, temporary ones, open questions. */
export const BY_SEVERITY: readonly number[] = [
  exitCodeOf("INTERNAL"),
  exitCodeOf("CONFIG"),
  exitCodeOf("AUTH"),
  NOT_FOUND_EXIT,
  exitCodeOf("PROTOCOL"),
  exitCodeOf("UPSTREAM"),
  exitCodeOf("TIMEOUT"),
  exitCodeOf("TRANSPORT"),
  ASKS_EXIT,
];

/** The exit code of a command with several parts: that of its most serious one; 0 without any. */
export const worstExitCode = (codes: readonly number[]): number =>
  BY_SEVERITY.find((code) => codes.includes(code)) ?? 0;

/** The exit code for a delegation that has ended or asks. */
export function exitCodeOfEnd(delegation: Delegation): number {
  if (delegation.interrupt !== null) return ASKS_EXIT;
  return delegation.state === "completed" ? 0 : exitCodeFor(endError(delegation));
}

/** The exit code of an error of which only the code is known. */
export function exitCodeOfCode(code: string): number {
  if (!isErrorCode(code)) return exitCodeOf("PROTOCOL");
  const { category, status } = ERRORS[code];
  return status === 404 ? NOT_FOUND_EXIT : exitCodeOf(category);
}

/** The error with which a command reports a delegation that failed, was rejected or was canceled. */
export function endError({ id, state, target, error }: Delegation): ErrandApiError {
  const recovery = error ? recoveryFor(error) : "See 'errand get <id>'.";
  return cliError({
    code: error?.code ?? state,
    category: error?.category ?? "UPSTREAM",
    detail: `${id} ${state}${error ? `: ${error.message}` : ""}`,
    recovery: recovery.replaceAll("<id>", id).replaceAll("<agent>", target),
    retryable: error?.retryable ?? false,
  });
}

/** A write that the system refused: a full disk, a quota, a limit of a file's size, a device that is gone. */
export function outputFailed(
  thrown: unknown,
  target: string,
  command = "errand",
): ErrandApiError | undefined {
  if (!(thrown instanceof Error) || !("code" in thrown)) return undefined;
  const what = typeof thrown.code === "string" ? FAILED_WRITES.get(thrown.code) : undefined;
  if (what === undefined) return undefined;
  const again = CHANGES.test(command)
    ? "The command has taken effect, so check before you run it again."
    : "Then run the command again.";
  return localError(
    {
      code: "output_failed",
      category: "CONFIG",
      detail: `cannot write ${target}: ${what} (${thrown.code})`,
      recovery: `Make room or write to another place. ${again}`,
    },
    thrown,
  );
}

/** Commands that print what they have done, such as an id or a new token. */
const CHANGES =
  /^errand (?:delegate|answer|approve|deny|message|cancel|redrive|delete|invite|agent (?:put|pause|resume|delete)|schedule (?:create|change|run|pause|resume|delete)|rules (?:create|revoke)|notify (?:create|change|test|resume|delete)|files delete|token (?:create|revoke)|sessions (?:link|revoke))$/;

const FAILED_WRITES: ReadonlyMap<string, string> = new Map([
  ["ENOSPC", "no space is left on the device"],
  ["EDQUOT", "the disk quota is used up"],
  ["EFBIG", "the file would become too large"],
  ["EIO", "the device failed"],
  ["EBADF", "it is closed"],
]);

function isClosedPipe(thrown: unknown): boolean {
  if (!(thrown instanceof Error) || !("code" in thrown)) return false;
  return thrown.code === "EPIPE" || thrown.code === "ERR_STREAM_DESTROYED";
}

function forCli(error: ErrandApiError, given: string | undefined): ErrandApiError {
  if (error instanceof CliError) return error;
  const { delegation_id: id = given } = error.problem;
  const general = recoveryFor(error);
  const recovery = id === undefined ? general : general.replaceAll("<id>", id);
  if (recovery === error.recovery) return error;
  return new ErrandApiError({ ...error.problem, recovery }, { cause: error.cause });
}

function withHelp(error: ErrandApiError, command: string): ErrandApiError {
  return usageError(error.message, `${error.recovery} See '${command} --help'.`.trim());
}

const UNKNOWN_COMMAND = /^(unknown command '([^']*)')(?: \(Did you mean (?:one of )?([^?]*)\?\))?$/;

function fromCommander(thrown: CommanderError, command: string): Failure {
  if (thrown.exitCode === 0) return { exitCode: 0 };
  // A bare `errand` or `errand agent` prints only its help.
  if (thrown.code === "commander.help") return { exitCode: exitCodeOf("PROTOCOL") };
  const detail = thrown.message
    .replace(/^error: /, "")
    .replaceAll("\n", " ")
    .replace(/\.$/, "");
  const unknown = thrown.code === "commander.unknownCommand" ? UNKNOWN_COMMAND.exec(detail) : null;
  if (unknown) return { exitCode: exitCodeOf("PROTOCOL"), error: unknownCommand(unknown, command) };
  const isForCommand = command === "errand work" && thrown.code === "commander.unknownOption";
  const recovery = isForCommand
    ? "Put '--' before the command, so that its options are its own: errand work --agent <name> -- <command>."
    : "";
  return { exitCode: exitCodeOf("PROTOCOL"), error: withHelp(usageError(detail, recovery), command) };
}

/** What the word means elsewhere is a better guess than what is spelled alike. */
function unknownCommand(
  [, text = "", name = "", guesses = ""]: readonly (string | undefined)[],
  command: string,
): ErrandApiError {
  const alike = guesses.split(", ").filter((guess) => guess !== "" && isSpelledLike(name, guess));
  if (alike.length === 0 || isOtherName(command, name))
    return withHelp(usageError(text, byOtherName(command, name)), command);
  const [one] = alike;
  const said = alike.length === 1 ? one : `one of ${alike.join(", ")}`;
  return withHelp(usageError(`${text} (Did you mean ${said}?)`), command);
}
