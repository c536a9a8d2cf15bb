/**
 * What to do next, in the words of this program instead of HTTP's: the error table's own wording for the CLI, and
 * the one below for what the client finds itself. Limit: a sentence that is not the table's is left as it came.
 */
import { ERRORS, isErrorCode } from "../schema/errors.ts";

const LOCAL: Readonly<Record<string, string>> = {
  unreachable:
    "Start a broker with 'errand serve', or correct --url or ERRAND_URL; 'errand doctor' looks further.",
  connection_lost: "Try again; 'errand doctor' looks at the broker.",
  no_answer: "Try again; 'errand doctor' looks at the broker.",
  invalid_url: "Correct --url or ERRAND_URL, for example http://127.0.0.1:4180.",
  wait_ran_out: "It goes on: 'errand get <id> --wait' waits again, 'errand cancel <id>' ends it.",
};

export function recoveryFor({ code, recovery }: { code: string; recovery: string }): string {
  const local = LOCAL[code];
  if (local !== undefined) return local;
  // An agent may use a code of the table for what it means itself, and codes of its own.
  for (const row of [isErrorCode(code) ? ERRORS[code] : undefined, ERRORS.agent_error]) {
    if (row?.recovery === recovery) return row.cli ?? recovery;
  }
  return recovery;
}
