/**
 * `errand delegate --batch`: creates many delegations from JSON lines. Each line is accepted or refused on its own.
 */

import * as z from "zod";
import type { BatchInput } from "../../client/batch.ts";
import { type Delegated, Delegator } from "../../client/delegator.ts";
import { ErrandApiError, localError } from "../../client/errors.ts";
import type { ConnectionOptions } from "../../client/http.ts";
import {
  type DelegateInput,
  type Delegation,
  delegateRequestSchema,
  isPending,
} from "../../schema/delegation.ts";
import { InexactNumberError, parseExact } from "../../schema/exact-numbers.ts";
import { issuesOf, readAs } from "../../schema/issues.ts";
import {
  CliError,
  cliError,
  exitCodeFor,
  exitCodeOf,
  exitCodeOfEnd,
  Interrupted,
  worstExitCode,
} from "../failure.ts";
import type { CliHost } from "../host.ts";
import { recoveryFor } from "../recovery.ts";
import { noteHowToAnswer } from "../show/answer-notes.ts";
import { type Column, printRows } from "../show/list-table.ts";
import { note, print, printError, printJson } from "../show/output.ts";
import { RESULT_COLUMNS, type ResultRow, resultRows } from "../show/result-columns.ts";
import { interruptible } from "../signals.ts";
import { BatchWait, type BatchWaitOptions } from "./batch-wait.ts";

interface BatchSettings {
  /** For fields that a line omits. */
  readonly defaults: Partial<DelegateInput>;
  /** The idempotency key of a line is this key with the line's number. Default: a random key. */
  readonly key?: string | undefined;
  readonly json: boolean;
  /** Waits until each has ended or asks a question. */
  readonly wait?: { readonly timeoutSeconds?: number | undefined } | undefined;
}

interface Line {
  readonly number: number;
  readonly input: BatchInput | ErrandApiError;
}

/** The outcome of a line. */
type Outcome = { readonly number: number } & (
  | { readonly delegation: Delegated }
  | { readonly error: ErrandApiError }
);

/** Returns the most serious exit code of all lines. */
export async function delegateLines(
  host: CliHost,
  connection: ConnectionOptions,
  text: string,
  { defaults, key = crypto.randomUUID(), json, wait }: BatchSettings,
): Promise<number> {
  const lines = linesOf(text).map(([number, line]) => ({
    number,
    input: inputOf(line, number, key, defaults),
  }));
  return interruptible(async (signal) => {
    const waiting = wait && (await BatchWait.begin(host, connection, signal));
    const outcomes = await send(new Delegator(connection), lines, key, signal).catch(
      async (error: unknown) => {
        if (error instanceof Interrupted) await printError(host, mayBeAccepted(key), json);
        throw error;
      },
    );
    const codes: number[] = [];
    for (const outcome of outcomes) {
      if ("error" in outcome) codes.push(exitCodeFor(outcome.error));
      // With --wait, delegations are printed when the wait is over.
      if ("error" in outcome || !wait) await printOutcome(host, outcome, json);
    }
    const accepted = outcomes.length - codes.length;
    if (accepted > 0 && !json && !wait && host.isTty.stderr)
      await note(host, `accepted ${accepted} of ${lines.length} delegations, in the order of the lines.`);
    if (codes.length > 0 && !json) await note(host, refusedText(codes.length, lines.length, key));
    if (waiting) codes.push(...(await waitForAll(host, waiting, outcomes, { ...wait, json }, signal)));
    return worstExitCode(codes);
  });
}

function refusedText(refused: number, of: number, key: string): string {
  const text = `${refused} of ${of} lines were refused`;
  if (refused === of) return `${text}.`;
  return `${text}; send only these lines again, or all with --idempotency-key ${key}, so that the others are not sent twice.`;
}

/** Names the key, which may be random: without it, another run would delegate accepted lines a second time. */
const mayBeAccepted = (key: string): ErrandApiError =>
  cliError({
    code: "interrupted",
    category: "TRANSPORT",
    detail: "stopped before the broker answered; lines may have been accepted",
    recovery: `Run it again with --idempotency-key ${key}, so that none is delegated twice.`,
    retryable: true,
    details: { outcome: "unknown", idempotency_key: key },
  });

async function send(
  delegator: Delegator,
  lines: readonly Line[],
  key: string,
  signal: AbortSignal,
): Promise<Outcome[]> {
  const inputs = lines.flatMap(({ input }) => (input instanceof Error ? [] : [input]));
  const results = await delegator.delegateMany(inputs, { signal });
  let at = 0;
  return lines.flatMap(({ number, input }): Outcome[] => {
    const result = input instanceof Error ? { error: input } : results[at++];
    if (result?.delegation) return [{ number, delegation: result.delegation }];
    return result?.error ? [{ number, error: withKey(result.error, key) }] : [];
  });
}

async function printOutcome(host: CliHost, outcome: Outcome, json: boolean): Promise<void> {
  const { number: line } = outcome;
  if ("delegation" in outcome) {
    const { delegation } = outcome;
    await (json ? printJson(host, { line, delegation }) : print(host, delegation.id));
  } else if (json) await printJson(host, { line, error: outcome.error.problem });
  else await printError(host, withLine(outcome.error, line), false);
}

/** Prints the delegations when all have ended, the time is over, or the wait fails. Returns an exit code for each. */
async function waitForAll(
  host: CliHost,
  waiting: BatchWait,
  outcomes: readonly Outcome[],
  options: BatchWaitOptions,
  signal: AbortSignal,
): Promise<number[]> {
  const sent = outcomes.flatMap((one) => ("delegation" in one ? [one] : []));
  /** Those that could not be read are printed as the submit returned them. */
  const printAll = async (read: ReadonlyMap<string, Delegation>) => {
    const all = sent.map(({ number, delegation }) => ({
      line: number,
      delegation: read.get(delegation.id) ?? delegation,
    }));
    await printDelegations(host, all, options.json);
    return all.map(({ delegation }) => delegation);
  };
  try {
    const isOver = await waiting.waitUntilSettled(
      sent.map(({ delegation }) => delegation),
      options,
      signal,
    );
    const all = await printAll(await waiting.read());
    const running = all.filter(({ state }) => !isOver && isPending(state)).length;
    if (running > 0 && !options.json) await note(host, `${running} of ${all.length} continue.`);
    return all.map((one) => (isPending(one.state) ? exitCodeOf("TIMEOUT") : exitCodeOfEnd(one)));
  } catch (error) {
    if (!(error instanceof Interrupted || error instanceof ErrandApiError)) throw error;
    // Prints the ids, which nobody has seen yet. An unavailable broker is not asked for the states.
    const isReadable = error instanceof Interrupted;
    await printAll(isReadable ? await waiting.read().catch(() => new Map()) : new Map());
    if (!options.json) await note(host, "what has not ended continues.");
    throw error;
  }
}

async function printDelegations(
  host: CliHost,
  all: readonly { readonly line: number; readonly delegation: Delegation }[],
  json: boolean,
): Promise<void> {
  if (json) {
    for (const one of all) await printJson(host, one);
    return;
  }
  const delegations = all.map(({ delegation }) => delegation);
  const rows = resultRows(delegations).map((row, at) => ({ ...row, line: all[at]?.line ?? 0 }));
  const output = ["line", "id", "state", "target", "age", "task", "result"];
  await printRows(host, rows, LINE_COLUMNS, { output }, "nothing was delegated");
  await noteHowToAnswer(host, delegations);
}

const LINE_COLUMNS: readonly Column<ResultRow & { readonly line: number }>[] = [
  { name: "line", cell: ({ line }) => String(line) },
  ...RESULT_COLUMNS,
];

/** The lines with their numbers, without blank ones. */
function linesOf(text: string): [number, string][] {
  return text
    .split("\n")
    .map((line, at): [number, string] => [at + 1, line])
    .filter(([, line]) => line.trim() !== "");
}

const LINE = { whole: "the line" };
const lineSchema = z.looseObject({ idempotency_key: z.string().optional() });

function inputOf(line: string, number: number, key: string, defaults: Partial<DelegateInput>): Line["input"] {
  let value: unknown;
  try {
    value = parseExact(line);
  } catch (error) {
    if (error instanceof InexactNumberError) return refusal("inexact_number", error.message);
    return refusal("invalid_json", `not valid JSON (${error instanceof Error ? error.message : error})`);
  }
  const loose = readAs(lineSchema, value);
  if (!loose.success) return refusal("invalid_request", issuesOf(loose.error, LINE).text);
  const { idempotency_key = `${key}-${number}`, ...body } = loose.data;
  const parsed = readAs(delegateRequestSchema, { ...defaults, ...body });
  if (parsed.success) return { ...parsed.data, idempotency_key };
  return refusal("invalid_request", issuesOf(parsed.error, LINE).text);
}

function refusal(code: string, detail: string): ErrandApiError {
  return localError({ code, category: "PROTOCOL", detail, recovery: "Correct the line and send it again." });
}

/** Adds the key to the recovery of an error with unknown outcome, so that the user can retry safely. */
function withKey(error: ErrandApiError, key: string): ErrandApiError {
  const unknown = error.details?.outcome === "unknown";
  const repeat = `Run it again with --idempotency-key ${key}; accepted lines are not delegated twice.`;
  const recovery = unknown ? `${recoveryFor(error)} ${repeat}` : recoveryFor(error);
  return new CliError({ ...error.problem, recovery }, { cause: error });
}

function withLine(error: ErrandApiError, number: number): ErrandApiError {
  return new CliError({ ...error.problem, detail: `line ${number}: ${error.message}` });
}
