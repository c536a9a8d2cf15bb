/**
 * The link that `errand serve` prints on a terminal: it signs in to the console once, as the operator. Limit: only with
 * the embedded Redis. A person who starts that broker can read the operator's token anyway, while the terminal of a
 * deployment with an external Redis may be recorded.
 */
import { OPERATOR_IDENTITY } from "../engine/access/revocations.ts";
import type { Broker } from "../engine/broker.ts";

export async function signInLine({
  sessions,
  log,
}: Pick<Broker, "sessions" | "log">): Promise<string | undefined> {
  try {
    const { url } = await sessions.createCode(OPERATOR_IDENTITY);
    return `sign in to the console, once and within ten minutes: ${url}`;
  } catch (error) {
    // The broker is ready without it; 'errand sessions link' prints another.
    log.warn({ err: error instanceof Error ? error.message : "unknown" }, "no link to sign in");
    return undefined;
  }
}
