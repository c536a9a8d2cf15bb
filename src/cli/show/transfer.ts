/** Notes about the progress of a long copy, what it has, and sizes. */
import type { BackupSummary, CliHost } from "../host.ts";
import { note } from "./output.ts";

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

/** `3 delegations, 41 keys, 1.5 MB` */
export function contentText({ delegations, keys, bytes }: BackupSummary): string {
  const count = (number: number, one: string) => `${number} ${one}${number === 1 ? "" : "s"}`;
  return `${count(delegations, "delegation")}, ${count(keys, "key")}, ${bytesText(bytes)}`;
}

const UNITS = ["kB", "MB", "GB", "TB"];

/** `512 bytes`, `1.5 MB` */
export function bytesText(bytes: number): string {
  let amount = bytes;
  let unit = "bytes";
  for (const next of UNITS) {
    if (amount < 1000) break;
    amount /= 1000;
    unit = next;
  }
  return `${unit === "bytes" ? amount : amount.toFixed(1)} ${unit}`;
}
