/** Notes about the progress of a backup or restore, and about its content. */
import type { BackupSummary, CliHost } from "../host.ts";
import { note } from "./output.ts";
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
