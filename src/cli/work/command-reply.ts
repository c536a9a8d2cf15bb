/**
 * Turns a command's exit status and output into a reply. A short text becomes the reply itself; longer output and binary
 * output become an artifact, in pieces if it does not fit one request. Output that does not fit a delegation fails.
 */
import { ErrandApiError } from "../../client/errors.ts";
import { WorkerUnavailableError } from "../../client/unavailable.ts";
import { durationText } from "../../client/words.ts";
import type { Reply } from "../../client/work.ts";
import type { Artifact } from "../../schema/a2a.ts";
import { truncate } from "../../schema/text.ts";
import { OUTPUT_ARTIFACT } from "../show/reply.ts";
import type { Head } from "./capture.ts";
import { type CommandResult, type RunLimits, STDOUT_MAX } from "./child.ts";
import { failed } from "./failed-reply.ts";
import { invalidResult, resultReply, type WantedResult } from "./result.ts";
import { errnoOf } from "./temp-folder.ts";

/** Longer output becomes an artifact. */
const TEXT_MAX = 64 * 1024;
/** Below the broker's default ERRAND_MAX_BODY_BYTES, with room for the rest of the request. */
const JSON_MAX = 960 * 1024;
export const RAW_MAX = (JSON_MAX / 4) * 3;
/** EX_TEMPFAIL in sysexits.h. */
const TEMPORARY = 75;
/** EX_UNAVAILABLE in sysexits.h: no work would succeed now. */
const UNAVAILABLE = 69;
/** A shell that finds no program, or may not run it. */
const NO_PROGRAM: readonly (number | null)[] = [126, 127];

const ARTIFACT = "stdout";

export interface ReplyContext {
  /** Sends a piece of the output before the reply. */
  readonly send: (artifact: Artifact, options: { append: boolean; lastChunk: boolean }) => Promise<void>;
  readonly limits: RunLimits;
  /** The JSON that the output must be; undefined: it may be anything. */
  readonly result?: Pick<WantedResult, "schema" | "isSeparate"> | undefined;
}

export async function toReply(result: CommandResult, context: ReplyContext): Promise<Reply> {
  const { exitCode, signal, stdout, stderr, stdoutEnd, stoppedBy } = result;
  if (stoppedBy !== undefined) return stopped(stoppedBy, context.limits, stderr);
  if (exitCode === 0) return completed(stdout, context);
  const status = signal ? `killed by ${signal}` : `exit status ${exitCode}`;
  return failed("command_failed", stderr || stdoutEnd || status, exitCode === TEMPORARY);
}

/**
 * Throws if the exit status says that the worker cannot work now. A missing program says so only until the first success:
 * later it is probably a program that this task names.
 */
export function throwIfUnavailable({ exitCode, stoppedBy }: CommandResult, hasWorked: boolean): void {
  if (stoppedBy !== undefined) return;
  if (exitCode === UNAVAILABLE)
    throw new WorkerUnavailableError(`its command cannot work now (exit status ${exitCode})`);
  if (NO_PROGRAM.includes(exitCode) && !hasWorked)
    throw new WorkerUnavailableError(`a program of its command is missing (exit status ${exitCode})`);
}

export function cannotStart(command: string, error: unknown): WorkerUnavailableError {
  const code = errnoOf(error);
  const why = code === undefined ? "" : ` (${code})`;
  return new WorkerUnavailableError(`cannot start ${command}${why}`, { cause: error });
}

/** What a machine answers when it lacks something that every task needs. */
const NO_ROOM: readonly (string | undefined)[] = [
  ...["ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM", "ENOENT", "EMFILE", "ENFILE", "ENOMEM", "EIO"],
];

/** The error of the folder for a task's files: most are about the machine, the others about the task. */
export function cannotWrite(error: unknown): unknown {
  const code = errnoOf(error);
  if (!NO_ROOM.includes(code)) return error;
  return new WorkerUnavailableError(`cannot write the files of a task (${code})`, { cause: error });
}

function stopped(by: "timeout" | "idle-timeout", limits: RunLimits, stderr: string): Reply {
  const why =
    by === "timeout"
      ? `The command ran longer than ${durationText(limits.timeoutMs ?? 0)} (--timeout).`
      : `The command printed nothing for ${durationText(limits.idleTimeoutMs ?? 0)} (--idle-timeout).`;
  return failed("command_timeout", stderr === "" ? why : `${why}\n${stderr}`);
}

async function completed(stdout: Head, { send, result }: ReplyContext): Promise<Reply> {
  const bytes = stdout.bytes();
  const text = asText(bytes, stdout.isWhole);
  if (!stdout.isWhole) {
    const [first] = text === undefined ? rawParts(bytes.subarray(0, RAW_MAX)) : textParts(text);
    return tooLarge(stdout, first);
  }
  if (result) return text === undefined ? invalidResult("it is not text", "") : resultReply(text, result);
  if (text !== undefined && bytes.length <= TEXT_MAX)
    return { state: "completed", text: text.replace(/\r?\n$/, "") };
  const parts = text === undefined ? rawParts(bytes) : textParts(text);
  if (parts.length === 1) return { ...naming(stdout.total), artifacts: [artifact(parts)] };
  try {
    for (const [index, part] of parts.entries())
      await send(artifact([part]), { append: index > 0, lastChunk: index === parts.length - 1 });
  } catch (error) {
    if (!(error instanceof ErrandApiError) || !REFUSED.includes(error.code)) throw error;
    return failed("output_too_large", tooLargeText(stdout.total, "the delegation has no room for all of it"));
  }
  return naming(stdout.total);
}

/** The broker's codes for a delegation that is full. */
const REFUSED: readonly string[] = ["payload_too_large", "limit_reached"];

function tooLarge({ total }: Head, part: OutputPart | undefined): Reply {
  return {
    ...failed("output_too_large", tooLargeText(total, `at most ${STDOUT_MAX} are stored`)),
    ...(part && {
      artifacts: [{ ...artifact([part]), metadata: { truncated: true, stdout_bytes: total } }],
    }),
  };
}

const tooLargeText = (total: number, why: string): string =>
  `The output has ${total} bytes; ${why}. The artifact '${ARTIFACT}' has the beginning. ` +
  "Print less, or store the output elsewhere and print where.";

interface OutputPart {
  readonly text?: string;
  readonly raw?: string;
  readonly mediaType: string;
}

const artifact = (parts: readonly OutputPart[]) => ({
  artifactId: ARTIFACT,
  name: ARTIFACT,
  parts: parts.map((part) => ({ ...part })),
  metadata: {},
});

function naming(total: number): Reply {
  const text = `The output is the artifact '${ARTIFACT}': ${total} bytes.`;
  return {
    state: "completed",
    message: { role: "ROLE_AGENT", parts: [{ text }], metadata: { [OUTPUT_ARTIFACT]: ARTIFACT } },
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

function rawParts(bytes: Buffer): OutputPart[] {
  const parts: OutputPart[] = [];
  for (let at = 0; at < bytes.length; at += RAW_MAX) {
    const raw = bytes.subarray(at, at + RAW_MAX).toString("base64");
    parts.push({ raw, mediaType: "application/octet-stream" });
  }
  return parts;
}

function textParts(text: string): OutputPart[] {
  const parts: OutputPart[] = [];
  for (let rest = text; rest !== ""; ) {
    const part = cutToFit(rest);
    parts.push({ text: part, mediaType: "text/plain" });
    rest = rest.slice(part.length);
  }
  return parts;
}

/** Control characters and quotes need more bytes in JSON, so the length is found by trial. */
function cutToFit(text: string): string {
  // A character needs at least a byte.
  let cut = truncate(text, JSON_MAX);
  for (;;) {
    const size = Buffer.byteLength(JSON.stringify(cut));
    if (size <= JSON_MAX) return cut;
    const length = Math.floor(cut.length * (JSON_MAX / size) * 0.99);
    cut = truncate(cut, length);
  }
}
