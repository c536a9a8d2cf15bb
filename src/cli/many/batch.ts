/**
 * `errand delegate --batch`: many delegations from JSON lines, each accepted or refused on its own. Limit: read whole;
 * nothing is waited for.
 */
import { z } from "zod";
import type { BatchInput } from "../../client/batch.ts";
import type { Delegated, Delegator } from "../../client/delegator.ts";
import { type ErrandApiError, localError } from "../../client/errors.ts";
import { type DelegateInput, delegateRequestSchema } from "../../schema/delegation.ts";
import { issuesOf } from "../../schema/issues.ts";
import { InOurWords, worstExitCode } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { recoveryFor } from "../recovery.ts";
import { complain, note, print, printJson } from "../show/output.ts";
import { interruptible } from "../signals.ts";

interface How {
  /** What counts where a line says nothing. */
  readonly defaults: Partial<DelegateInput>;
  /** With the number of a line it is the key of that line. */
  readonly key?: string | undefined;
  readonly json: boolean;
}

interface Line {
  readonly number: number;
  readonly input: BatchInput | ErrandApiError;
}

/** The exit code of the worst. */
export async function delegateLines(
  host: CliHost,
  delegator: Delegator,
  text: string,
  how: How,
): Promise<number> {
  const key = how.key ?? crypto.randomUUID();
  const lines = linesOf(text).map(([number, line]) => ({
    number,
    input: inputOf(line, number, key, how.defaults),
  }));
  const inputs = lines.flatMap(({ input }) => (input instanceof Error ? [] : [input]));
  const results = await interruptible((signal) => delegator.delegateMany(inputs, { signal }));
  const refused: ErrandApiError[] = [];
  let at = 0;
  for (const { number, input } of lines) {
    const result = input instanceof Error ? { error: input } : results[at++];
    if (result?.delegation) await accepted(host, number, result.delegation, how.json);
    const error = result?.error && inWords(result.error, key);
    if (!error) continue;
    refused.push(error);
    if (how.json) await printJson(host, { line: number, error: error.problem });
    else await complain(host, prefixed(error, number), false);
  }
  if (refused.length > 0 && !how.json) await note(host, `${refused.length} of ${lines.length} were refused.`);
  return worstExitCode(refused);
}

function accepted(host: CliHost, line: number, delegation: Delegated, json: boolean): Promise<void> {
  return json ? printJson(host, { line, delegation }) : print(host, delegation.id);
}

/** With their numbers; blank ones are none. */
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
    return refusal("invalid_json", `it is not JSON (${error instanceof Error ? error.message : error})`);
  }
  const loose = lineSchema.safeParse(value);
  if (!loose.success) return refusal("invalid_request", issuesOf(loose.error, LINE).text);
  const { idempotency_key = `${key}-${number}`, ...body } = loose.data;
  const parsed = delegateRequestSchema.safeParse({ ...defaults, ...body });
  if (parsed.success) return { ...parsed.data, idempotency_key };
  return refusal("invalid_request", issuesOf(parsed.error, LINE).text);
}

function refusal(code: string, detail: string): ErrandApiError {
  return localError({ code, category: "PROTOCOL", detail, recovery: "Correct the line, and send it again." });
}

/** Whether it was accepted may be unknown; the key finds out. */
function inWords(error: ErrandApiError, key: string): ErrandApiError {
  const unknown = error.details?.outcome === "unknown";
  const recovery = unknown
    ? `Run it again with --idempotency-key ${key}: what was accepted is found, not doubled.`
    : recoveryFor(error);
  return new InOurWords({ ...error.problem, recovery }, { cause: error });
}

function prefixed(error: ErrandApiError, number: number): ErrandApiError {
  return new InOurWords({ ...error.problem, detail: `line ${number}: ${error.message}` });
}
