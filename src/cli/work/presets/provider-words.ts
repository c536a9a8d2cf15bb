/**
 * Why a provider refuses all work, from the error of a program. Limit: only for what the program itself reports as an
 * error; what a model or a task says decides nothing.
 */
import type { Cause, Facts } from "./classify.ts";

/** An HTTP status with a word that says that it is one. */
const STATUS =
  /(?:\b(?:HTTP|status(?: code)?|error(?: code)?|code)"?[ :=]*\(?|\[API Error: )([45]\d\d)\b|\b(401 Unauthorized|403 Forbidden|429 Too Many Requests)\b/i;

const SPOKEN: readonly (readonly [RegExp, Cause])[] = [
  [
    /\b(?:api key not valid|(?:invalid|incorrect|missing) api key|invalid x-api-key|authentication required)/i,
    "signed_out",
  ],
  [/\b(?:not (?:logged|signed) in|please (?:log|sign) in|no authentication information)\b/i, "signed_out"],
  [
    /\b(?:rate limit(?:ed)?|usage limit|quota exceeded|exceeded your (?:current )?quota|exhausted your .{0,40}quota)\b/i,
    "limit",
  ],
  [/\b(?:credit balance is too low|insufficient (?:credits|funds|balance)|payment required)\b/i, "unpaid"],
  [/\b(?:overloaded)\b/i, "overloaded"],
  [
    /\b(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|fetch failed|unable to connect|connection error)\b/i,
    "unreachable",
  ],
];

export function providerCause(words: string): Pick<Facts, "status" | "cause"> {
  const found = STATUS.exec(words);
  const status = found && Number((found[1] ?? found[2] ?? "").slice(0, 3));
  if (status) return { status };
  const spoken = SPOKEN.find(([pattern]) => pattern.test(words));
  return spoken === undefined ? {} : { cause: spoken[1] };
}
