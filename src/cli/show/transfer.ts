/** What backup, restore and migrate print: their progress, what they moved, and how a broker is started on it. */
import type { BackupSummary, CliHost, Place } from "../host.ts";
import { note, oneLine } from "./output.ts";
import { sizeText } from "./size.ts";

const EVERY_MS = 2_000;

/** Prints a note at most every two seconds, the first one after two; none with --json. */
export function progressNotes(host: CliHost, json: boolean): (text: () => string) => void {
  let lastAt = performance.now();
  return (text) => {
    const now = performance.now();
    if (json || now - lastAt < EVERY_MS) return;
    lastAt = now;
    void note(host, `${text()}.`).catch(() => undefined);
  };
}

/** `3 delegations, 41 keys` */
export function countText({ delegations, keys }: Pick<BackupSummary, "delegations" | "keys">): string {
  const count = (number: number, one: string) => `${number} ${one}${number === 1 ? "" : "s"}`;
  return `${count(delegations, "delegation")}, ${count(keys, "key")}`;
}

/** `3 delegations, 41 keys, 1.5 MiB` */
export const contentText = ({ bytes, ...counts }: BackupSummary): string =>
  `${countText(counts)}, ${sizeText(bytes)}`;

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
