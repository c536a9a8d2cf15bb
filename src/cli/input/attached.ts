/** The files of `--attach`, for the commands that send a message. */
import { Delegator } from "../../client/delegator.ts";
import type { ConnectionOptions } from "../../client/http.ts";
import { StoredFiles } from "../../client/stored-files.ts";
import type { MessageInput } from "../../schema/a2a.ts";
import { LIMITS } from "../../schema/limits.ts";
import { findFiles } from "../files/found-files.ts";
import type { LocalFile } from "../files/upload-file.ts";
import type { CliHost } from "../host.ts";
import { note, oneLine } from "../show/output.ts";
import { sizeText } from "../show/size.ts";
import { progressNotes } from "../show/transfer.ts";
import { interruptible } from "../signals.ts";
import { type Uploads, withAttachments } from "./attachment.ts";

export interface AttachOptions {
  readonly attach?: readonly string[];
  readonly json?: boolean;
}

/** Says what of their folders is left out. */
export async function foundIn(
  host: CliHost,
  { attach = [], json }: AttachOptions,
): Promise<readonly LocalFile[]> {
  const { files, leftOut } = await findFiles(attach, LIMITS.delegation_files.value);
  if (!json) for (const text of leftOut) await note(host, `left out of ${text}.`);
  return files;
}

/** The message with the files; it may have no other part. */
export async function withFiles(
  host: CliHost,
  connection: ConnectionOptions,
  message: string | MessageInput,
  files: readonly LocalFile[],
  { json = false }: AttachOptions,
): Promise<string | MessageInput> {
  if (files.length === 0) return message;
  const given = typeof message === "string" ? { parts: [{ text: message }] } : message;
  const sent = await interruptible((signal) =>
    withAttachments({ message: given }, files, uploadsOf(host, connection, signal, json)),
  );
  return "message" in sent ? sent.message : sent.task;
}

/** On a terminal, with notes on how far a large file is. */
export function uploadsOf(
  host: CliHost,
  connection: ConnectionOptions,
  signal: AbortSignal,
  json: boolean,
): Uploads {
  const notes = progressNotes(host, json || !host.isTty.stderr);
  return {
    delegator: new Delegator(connection),
    stored: new StoredFiles(connection),
    signal,
    onProgress: ({ name, size }, bytes) =>
      notes(() => `${oneLine(name)}: ${sizeText(bytes)} of ${sizeText(size)} uploaded`),
  };
}
