/**
 * The log: pino, one JSON object a line on stderr. Limit: it redacts what looks like a credential in the
 * finished line, and callers hand it named fields, never headers, queries or bodies.
 */
import { type Logger, pino } from "pino";

export type Log = Logger;

const SECRET = /errand_[0-9a-z]{20,}|whsec_[A-Za-z0-9+/=_-]+|(Bearer )[^\s"\\]+/g;

/** Blanks whatever looks like a token; a net under the rule that nobody logs one. */
export const scrub = (line: string): string =>
  line.replace(SECRET, (_match, bearer: string | undefined) => `${bearer ?? ""}[redacted]`);

export function createLog(level: string, write: (line: string) => void): Log {
  return pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    { write: (line) => write(scrub(line)) },
  );
}
