/**
 * The log: pino, one JSON object per line; log-text.ts makes lines for people of them. It redacts text that looks like a credential. Limit: callers must
 * pass named fields, never headers, queries or bodies.
 */
import { type Logger, pino } from "pino";

export type Log = Logger;

const TOKEN = /errand_(?:(?:operator|session|code)_)?[0-9a-z]+/g;
/** A shorter match is no token, but one of our names, such as `errand_moves_total`. */
const TOKEN_LENGTH = "errand_".length + 20;
const SECRET = /whsec_[A-Za-z0-9+/=_-]+|(Bearer )[^\s"\\]+/g;
const REDACTED = "[redacted]";

/** Redacts text that looks like a token, in case a caller logs one by mistake. */
export const scrub = (line: string): string =>
  line
    .replace(TOKEN, (match) => (match.length < TOKEN_LENGTH ? match : REDACTED))
    .replace(SECRET, (_match, bearer: string | undefined) => `${bearer ?? ""}${REDACTED}`);

/** `base`: fields of every line. */
export function createLog(
  level: string,
  write: (line: string) => void,
  base: Readonly<Record<string, unknown>> | null = null,
): Log {
  return pino(
    {
      level,
      base,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line) => write(scrub(line)) },
  );
}
