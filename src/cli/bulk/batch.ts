/**
 * `errand delegate --batch`: creates many delegations from JSON lines. Each line is accepted or refused on its own.
 */
import { z } from "zod";
import type { BatchInput } from "../../client/batch.ts";
import type { Delegated, Delegator } from "../../client/delegator.ts";
import { type ErrandApiError, localError } from "../../client/errors.ts";
import { type DelegateInput, delegateRequestSchema } from "../../schema/delegation.ts";
import { issuesOf } from "../../schema/issues.ts";
import { CliError, worstExitCode } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { recoveryFor } from "../recovery.ts";
import { note, print, printError, printJson } from "../show/output.ts";
import { interruptible } from "../signals.ts";

interface BatchSettings {
  /** For fields that a line omits. */
  readonly defaults: Partial<DelegateInput>;
  /** The idempotency key of a line is this key with the line's number. Default: a random key. */
  readonly key?: string | undefined;
  readonly json: boolean;
}

interface Line {
  readonly number: number;
  readonly input: BatchInput | ErrandApiError;
}

/** Returns the exit code of the most serious error. */
export async function delegateLines(
  host: CliHost,
  delegator: Delegator,
  text: string,
  { defaults, key = crypto.randomUUID(), json }: BatchSettings,
): Promise<number> {
  const lines = linesOf(text).map(([number, line]) => ({
    number,
    input: inputOf(line, number, key, defaults),
  }));
  const inputs = lines.flatMap(({ input }) => (input instanceof Error ? [] : [input]));
  const results = await interruptible((signal) => delegator.delegateMany(inputs, { signal }));
  const refused: ErrandApiError[] = [];
  let at = 0;
  for (const { number, input } of lines) {
    const result = input instanceof Error ? { error: input } : results[at++];
    if (result?.delegation) await printAccepted(host, number, result.delegation, json);
    const error = result?.error && withKey(result.error, key);
    if (!error) continue;
    refused.push(error);
    if (json) await printJson(host, { line: number, error: error.problem });
    else await printError(host, prefixed(error, number), false);
  }
  if (refused.length > 0 && !json)
    await note(host, `${refused.length} of ${lines.length} lines were refused.`);
  return worstExitCode(refused.map(({ category }) => category));
}

function printAccepted(host: CliHost, line: number, delegation: Delegated, json: boolean): Promise<void> {
  return json ? printJson(host, { line, delegation }) : print(host, delegation.id);
}

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
    value = JSON.parse(line);
  } catch (error) {
    return refusal("invalid_json", `not valid JSON (${error instanceof Error ? error.message : error})`);
  }
  const loose = lineSchema.safeParse(value);
  if (!loose.success) return refusal("invalid_request", issuesOf(loose.error, LINE).text);
  const { idempotency_key = `${key}-${number}`, ...body } = loose.data;
  const parsed = delegateRequestSchema.safeParse({ ...defaults, ...body });
  if (parsed.success) return { ...parsed.data, idempotency_key };
  return refusal("invalid_request", issuesOf(parsed.error, LINE).text);
}

function refusal(code: string, detail: string): ErrandApiError {
  return localError({ code, category: "PROTOCOL", detail, recovery: "Correct the line and send it again." });
}

/** Adds the key to the recovery of an error with unknown outcome, so that the user can retry safely. */
function withKey(error: ErrandApiError, key: string): ErrandApiError {
  const unknown = error.details?.outcome === "unknown";
  const recovery = unknown
    ? `Run it again with --idempotency-key ${key}; accepted lines are not delegated twice.`
    : recoveryFor(error);
  return new CliError({ ...error.problem, recovery }, { cause: error });
}

function prefixed(error: ErrandApiError, number: number): ErrandApiError {
  return new CliError({ ...error.problem, detail: `line ${number}: ${error.message}` });
}
