/**
 * Turns a command's exit status and output into a reply. A short text becomes the reply itself; longer output and binary
 * output become an artifact. Limit: output is cut to 960 KiB as JSON, to fit one request, and the reply says so.
 */
import type { Reply } from "../../client/work.ts";
import { truncate } from "../../schema/text.ts";
import { OUTPUT_ARTIFACT } from "../show/reply.ts";
import { cutBytes, type Head } from "./capture.ts";
import type { CommandResult } from "./child.ts";

/** Longer output becomes an artifact. */
const TEXT_MAX = 64 * 1024;
/** Below the broker's default ERRAND_MAX_BODY_BYTES, with room for the rest of the request. */
const JSON_MAX = 960 * 1024;
const RAW_MAX = (JSON_MAX / 4) * 3;
const ERROR_MAX = 4096;
/** EX_TEMPFAIL in sysexits.h. */
const TEMPORARY = 75;

const ARTIFACT = "stdout";

export function toReply({ exitCode, signal, stdout, stderr }: CommandResult): Reply {
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
    return withArtifact(part, stdout.total, kept.length);
  }
  if (stdout.isWhole && bytes.length <= TEXT_MAX)
    return { state: "completed", text: text.replace(/\r?\n$/, "") };
  const fitting = cutToFit(text);
  return withArtifact({ text: fitting, mediaType: "text/plain" }, stdout.total, Buffer.byteLength(fitting));
}

type OutputPart = { text: string; mediaType: string } | { raw: string; mediaType: string };

/** Reply and artifact in one request, so that both are accepted or neither. */
function withArtifact(part: OutputPart, total: number, kept: number): Reply {
  const cut = kept < total ? { truncated: true, stdout_bytes: total, kept_bytes: kept } : {};
  const metadata = { [OUTPUT_ARTIFACT]: ARTIFACT, ...cut };
  const size = kept < total ? `the first ${kept} of ${total} bytes` : `${total} bytes`;
  const text = `The output is the artifact '${ARTIFACT}': ${size}.`;
  return {
    state: "completed",
    message: { role: "ROLE_AGENT", parts: [{ text }], metadata },
    artifacts: [{ artifactId: ARTIFACT, name: ARTIFACT, parts: [part], metadata: cut }],
  };
}

function asText(bytes: Buffer, isWhole: boolean): string | undefined {
  try {
    // The bound may have cut a character in two; that does not make the output binary.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: !isWhole });
  } catch {
    return undefined;
  }
}

/** Control characters and quotes need more bytes in JSON, so the length is found by trial. */
function cutToFit(text: string): string {
  let cut = text;
  for (;;) {
    const size = Buffer.byteLength(JSON.stringify(cut));
    if (size <= JSON_MAX) return cut;
    const length = Math.floor(cut.length * (JSON_MAX / size) * 0.99);
    cut = truncate(cut, length);
  }
}
