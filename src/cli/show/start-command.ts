/** How a broker is started on data at a place. */
import type { Place } from "../host.ts";
import { oneLine } from "./output.ts";

/** The command that starts a broker on the restored data. A password in an address is not repeated. */
export function startCommand({ dataDir, redisUrl }: Place): string {
  if (redisUrl !== undefined) {
    const hasSecret = URL.canParse(redisUrl) && new URL(redisUrl).password !== "";
    return `'errand serve --redis-url ${hasSecret ? "URL' with the same URL" : `${oneLine(redisUrl)}'`}`;
  }
  if (dataDir === undefined) return "'errand serve'";
  return /^[\w./@+-]+$/.test(dataDir)
    ? `'errand serve --data-dir ${dataDir}'`
    : `'errand serve --data-dir ${JSON.stringify(oneLine(dataDir))}'`;
}
