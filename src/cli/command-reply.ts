/**
 * What a command's end says to the delegator. Limit: one body of text, or of bytes if it is no text; what
 * does not fit into a request is cut, and the reply's metadata says so.
 */
import type { Reply } from "../client/work.ts";
import { cutBytes, type Head } from "./capture.ts";
import type { Ended } from "./child.ts";

/** As JSON, below the broker's default ERRAND_MAX_BODY_BYTES with room for the rest of the request. */
const JSON_MAX = 960 * 1024;
const RAW_MAX = (JSON_MAX / 4) * 3;
const ERROR_MAX = 4096;
/** sysexits.h EX_TEMPFAIL: "try again later". */
const TEMPORARY = 75;

type ReplyPart = { text: string } | { raw: string; mediaType: string };

export function toReply({ exitCode, signal, stdout, stderr }: Ended): Reply {
  if (exitCode === 0) return completed(stdout);
  const status = signal ? `killed by ${signal}` : `exit status ${exitCode}`;
  const message = cutBytes(stderr || status, ERROR_MAX);
  return { state: "failed", error: { code: "command_failed", message, retryable: exitCode === TEMPORARY } };
}

export function cannotStart(command: string, error: unknown): Reply {
  const why = error instanceof Error ? error.message : String(error);
  return { state: "failed", error: { code: "command_failed", message: `cannot start ${command}: ${why}` } };
}

function completed(stdout: Head): Reply {
  const bytes = stdout.bytes();
  const text = asText(bytes, stdout.isWhole);
  if (text === undefined) {
    const kept = bytes.subarray(0, RAW_MAX);
    const part = { raw: kept.toString("base64"), mediaType: "application/octet-stream" };
    return withParts([part], stdout.total, kept.length);
  }
  const whole = stdout.isWhole ? text.replace(/\r?\n$/, "") : text;
  const fitting = cutToFit(whole);
  if (stdout.isWhole && fitting === whole) return { state: "completed", text: whole };
  return withParts([{ text: fitting }], stdout.total, Buffer.byteLength(fitting));
}

function withParts(parts: ReplyPart[], total: number, kept: number): Reply {
  const metadata = { truncated: true, stdout_bytes: total, kept_bytes: kept };
  return { state: "completed", message: { role: "ROLE_AGENT", parts, ...(kept < total && { metadata }) } };
}

function asText(bytes: Buffer, isWhole: boolean): string | undefined {
  try {
    // A character that the bound cut in two is no reason to call it binary.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: !isWhole });
  } catch {
    return undefined;
  }
}

/** Control characters and quotes grow in JSON, so the cut is found by trying. */
function cutToFit(text: string): string {
  let cut = text;
  for (;;) {
    const size = Buffer.byteLength(JSON.stringify(cut));
    if (size <= JSON_MAX) return cut;
    const length = Math.floor(cut.length * (JSON_MAX / size) * 0.99);
    cut = cut.slice(0, length).replace(/[\ud800-\udbff]$/, "");
  }
}
