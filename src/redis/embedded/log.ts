/**
 * Reads from the log of the embedded Redis whether its append-only file was loaded without damage. Limit: a flipped bit
 * in a value is not noticed, because commands in the file have no checksum.
 */
import { open } from "node:fs/promises";

export interface LoadReport {
  /** The file ended in the middle of a command; Redis dropped that command. */
  readonly truncated: { readonly file: string; readonly offset: number } | null;
  /** The file that Redis could not read. */
  readonly damaged: string | null;
}

export function readLoad(text: string): LoadReport {
  const cut = /Truncating the AOF (\S+) at offset (\d+)/.exec(text);
  const damaged =
    /(?:Bad file format reading|Unexpected end of file reading) the append only file (\S+?)[:.]? /.exec(
      text,
    ) ??
    /(?:Error reading the RDB preamble of the AOF file|Error reading the append only file) (\S+?),/.exec(
      text,
    );
  return {
    truncated: cut ? { file: cut[1] ?? "", offset: Number(cut[2]) } : null,
    damaged: damaged?.[1] ?? (/RDB CRC error|Wrong RDB checksum/.test(text) ? "the base file" : null),
  };
}

const START = "is starting oO0OoO0OoO0Oo";
const MAX_BYTES = 65_536;

/** The report of the last start, from the last 64 KiB of the log; null without a log. */
export async function readLastLoad(path: string): Promise<LoadReport | null> {
  const text = await logSince(path, 0);
  return text === "" ? null : readLoad(text.slice(Math.max(0, text.lastIndexOf(START))));
}

const LAST_LINES = 4;
const LAST_CHARS = 500;
/** Only a change of the server's own words, and no control character, reaches our log. */
const CONTROLS = /[\p{Cc}\p{Cf}]/gu;

/** The last lines of the log, without the columns of process and time, and without the password. */
export function lastWordsOf(text: string, password: string): string {
  const lines = text.trimEnd().split("\n").slice(-LAST_LINES);
  return lines
    .map((line) => line.replace(/^\d+:[A-Z] \d\d \w{3} \d{4} [\d:.]+ [.\-*#] /, "").replaceAll(CONTROLS, " "))
    .join(" / ")
    .replaceAll(password, "…")
    .slice(-LAST_CHARS);
}

/** The log from this size on, at most its last 64 KiB. */
export async function logSince(path: string, from: number): Promise<string> {
  const file = await open(path, "r").catch(() => null);
  if (!file) return "";
  try {
    const { size } = await file.stat();
    const start = Math.max(size < from ? 0 : from, size - MAX_BYTES);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - start), 0, size - start, start);
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}
