/** How a broker is started on data at a place. */
import type { Place } from "../host.ts";
import { oneLine } from "./output.ts";

/** The command that starts a broker on the restored data. An address that may contain a password is not repeated. */
export function startCommand({ dataDir, redisUrl }: Place): string {
  if (redisUrl !== undefined) {
    // Lists of nodes are no URLs that can be parsed.
    const hasSecret = /[@?]/.test(redisUrl);
    if (hasSecret) return "'errand serve' with the same URL in ERRAND_REDIS_URL";
    return `'errand serve --redis-url ${oneLine(redisUrl)}'`;
  }
  if (dataDir === undefined) return "'errand serve'";
  return /^[\w./@+-]+$/.test(dataDir)
    ? `'errand serve --data-dir ${dataDir}'`
    : `'errand serve --data-dir ${JSON.stringify(oneLine(dataDir))}'`;
}
