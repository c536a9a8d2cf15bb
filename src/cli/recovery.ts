/**
 * Recovery texts for users of the CLI instead of HTTP: from the error table, or from the list below for errors that
 * the client library raises. Any other recovery stays as it is.
 */
import { RECOVERIES } from "../client/connection-errors.ts";
import { ERRORS, isErrorCode } from "../schema/errors.ts";

const LOCAL: Readonly<Record<keyof typeof RECOVERIES | "wait_ran_out", string>> = {
  unreachable:
    "Start a broker with 'npm start' in Errand's folder or 'errand serve', or correct --url or ERRAND_URL; 'errand doctor' shows more.",
  connection_lost: "Try again; 'errand doctor' checks the broker.",
  no_answer: "Try again; 'errand doctor' checks the broker.",
  invalid_url: "Correct --url or ERRAND_URL, for example http://127.0.0.1:4180.",
  wait_ran_out: "It continues: 'errand get <id> --wait' waits again, 'errand cancel <id>' cancels it.",
};

const isLocal = (code: string): code is keyof typeof LOCAL => Object.hasOwn(LOCAL, code);

export function recoveryFor({ code, recovery }: { code: string; recovery: string }): string {
  // An error with a cause that is known better, such as a proxy's, has a recovery of its own.
  if (isLocal(code) && (code === "wait_ran_out" || RECOVERIES[code] === recovery)) return LOCAL[code];
  // A failed read says to wait, and not to send the key again.
  if (isErrorCode(code) && recovery === ERRORS.overloaded.recovery) return ERRORS[code].cli ?? recovery;
  // An agent may use a code of the table with another meaning, so the recovery must match, too.
  for (const row of [isErrorCode(code) ? ERRORS[code] : undefined, ERRORS.agent_error]) {
    if (row?.recovery === recovery) return row.cli ?? recovery;
  }
  return recovery;
}
