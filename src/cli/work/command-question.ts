/**
 * Questions of a command of `errand work`: it ends with exit status 79, and its output is the question. The answer
 * starts the command again.
 */

import { QuestionOutcome } from "../../client/questions.ts";
import type { Reply } from "../../client/work.ts";
import { parseExact } from "../../schema/exact-numbers.ts";
import { type InterruptInput, interruptRequestSchema } from "../../schema/interrupt.ts";
import { issuesOf, readAs } from "../../schema/issues.ts";
import { cutBytes } from "./capture.ts";
import type { CommandResult } from "./child.ts";

/** The first number that sysexits.h leaves free. */
export const EXIT_QUESTION = 79;

/** The limit of an answer's text, used for questions, too. */
const TEXT_MAX = 64 * 1024;
const LINE = /^\s*\{\s*"interrupt"\s*:/;

/** True for a line with a question, which is not reported as progress. */
export const isQuestionLine = (line: string): boolean => LINE.test(line);

export function lastLineOf({ stdout }: Pick<CommandResult, "stdout">): string {
  const text = new TextDecoder().decode(stdout.bytes()).trim();
  return text.slice(text.lastIndexOf("\n") + 1);
}

/**
 * The question of the last line, if that is `{"interrupt": {…}}` with the fields of POST /v1/leases/{id}/interrupt.
 * Otherwise all output is the question's text.
 */
export function toQuestion(result: CommandResult): QuestionOutcome | Reply {
  const last = lastLineOf(result);
  if (!isQuestionLine(last)) {
    const text = new TextDecoder().decode(result.stdout.bytes()).trim();
    return new QuestionOutcome({ kind: "input", ...(text !== "" && { text: cutBytes(text, TEXT_MAX) }) });
  }
  const asked = parsed(last);
  return typeof asked === "string" ? invalidQuestion(asked) : new QuestionOutcome(asked);
}

function parsed(line: string): InterruptInput | string {
  let value: unknown;
  try {
    value = parseExact(line);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  const given =
    typeof value === "object" && value !== null && "interrupt" in value ? value.interrupt : undefined;
  const checked = readAs(
    interruptRequestSchema,
    typeof given === "object" && given !== null ? { kind: "input", ...given } : given,
  );
  if (checked.success) return checked.data;
  return issuesOf(checked.error, { whole: "interrupt" }).text;
}

function invalidQuestion(why: string): Reply {
  const message = `exit status ${EXIT_QUESTION}, but the last line is not a valid question: ${why}`;
  return { state: "failed", error: { code: "command_failed", message } };
}
