/**
 * How a command of `errand work` asks: it ends with exit status 79, and its output is the question. Limit: its run ends
 * with that; the answer starts it again from the top.
 */
import { Asking } from "../../client/questions.ts";
import type { Reply } from "../../client/work.ts";
import { type InterruptInput, interruptRequestSchema } from "../../schema/interrupt.ts";
import { issuesOf } from "../../schema/issues.ts";
import { cutBytes } from "./capture.ts";
import type { Ended } from "./child.ts";

/** The first number that sysexits.h leaves free. */
export const ASKS = 79;

/** As long as an answer may be that is text alone. */
const TEXT_MAX = 64 * 1024;
const LINE = /^\s*\{\s*"interrupt"\s*:/;

/** A line that is a question for the broker is no progress for people. */
export function isQuestionLine(line: string): boolean {
  return LINE.test(line);
}

/** The last line as `{"interrupt": {…}}`, with the fields of POST /v1/leases/{id}/interrupt; else all of it as text. */
export function toQuestion({ stdout }: Ended): Asking | Reply {
  const text = new TextDecoder().decode(stdout.bytes()).trim();
  const last = text.slice(text.lastIndexOf("\n") + 1);
  if (!isQuestionLine(last)) {
    return new Asking({ kind: "input", ...(text !== "" && { text: cutBytes(text, TEXT_MAX) }) });
  }
  const asked = parsed(last);
  return typeof asked === "string" ? noQuestion(asked) : new Asking(asked);
}

function parsed(line: string): InterruptInput | string {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  const given =
    typeof value === "object" && value !== null && "interrupt" in value ? value.interrupt : undefined;
  const checked = interruptRequestSchema.safeParse(
    typeof given === "object" && given !== null ? { kind: "input", ...given } : given,
  );
  if (checked.success) return checked.data;
  return issuesOf(checked.error, { whole: "interrupt" }).text;
}

function noQuestion(why: string): Reply {
  const message = `exit status ${ASKS}, but its last line asks nothing: ${why}`;
  return { state: "failed", error: { code: "command_failed", message } };
}
