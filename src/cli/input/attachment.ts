/**
 * Files that `errand delegate --attach` sends with the task, as parts of its message: small ones in it, the others uploaded
 * and named by their URL.
 */
import type { Delegator } from "../../client/delegator.ts";
import { ErrandApiError } from "../../client/errors.ts";
import type { StoredFiles } from "../../client/stored-files.ts";
import type { Part } from "../../schema/a2a.ts";
import type { DelegateInput } from "../../schema/delegation.ts";
import { LIMITS } from "../../schema/limits.ts";
import { CliError, cliError } from "../failure.ts";
import { cannotAttach } from "../files/found-files.ts";
import { mediaTypeOf } from "../files/media-type.ts";
import { FileChangedError, type LocalFile, openRegular, uploadFile } from "../files/upload-file.ts";
import { recoveryFor } from "../recovery.ts";
import { oneLine } from "../show/output.ts";
import { sizeText } from "../show/size.ts";

/** The limit of a message, as JSON. */
const MAX_BYTES = LIMITS.delegation_bytes.value;
/** So many bytes of files are in the message; a file that exceeds them is uploaded. */
const INLINE_BYTES = 256 * 1024;

type Work = { task: string } | { message: NonNullable<DelegateInput["message"]> };

export interface Uploads {
  readonly delegator: Pick<Delegator, "upload">;
  readonly stored: Pick<StoredFiles, "page">;
  readonly signal: AbortSignal;
  /** Called before the first byte is sent; throws if the uploads would be for nothing. */
  readonly check?: () => Promise<void>;
  /** Called with the bytes of the file that the broker has. */
  readonly onProgress: (file: LocalFile, bytes: number) => void;
}

/** For an option that may be repeated. */
export const several = (value: string, before: readonly string[] = []): readonly string[] => [
  ...before,
  value,
];

/** The task with a part for each file, in their order. Everything is in the message of a broker that stores no files. */
export async function withAttachments(
  work: Work,
  files: readonly LocalFile[],
  uploads: Uploads,
): Promise<Work> {
  if (files.length === 0) return work;
  const given = "task" in work ? { parts: [{ text: work.task }] } : asMessage(work.message);
  const large = largeAmong(files);
  if (large.size > 0) await uploads.check?.();
  const uploaded = large.size > 0 && (await storesFiles(large, uploads)) ? large : new Set();
  const parts: Part[] = [...given.parts];
  let bytes = Buffer.byteLength(JSON.stringify(given));
  for (const file of files) {
    const part = uploaded.has(file) ? await upload(file, uploads) : await inline(file, MAX_BYTES - bytes);
    bytes += Buffer.byteLength(JSON.stringify(part));
    if (bytes > MAX_BYTES) throw tooLarge(file);
    parts.push(part);
  }
  return { message: { ...given, parts } };
}

const asMessage = (message: NonNullable<DelegateInput["message"]>) =>
  typeof message === "string" ? { parts: [{ text: message }] } : message;

function largeAmong(files: readonly LocalFile[]): ReadonlySet<LocalFile> {
  let left = INLINE_BYTES;
  const large = new Set<LocalFile>();
  for (const file of files) {
    if (file.size > left) large.add(file);
    else left -= file.size;
  }
  return large;
}

/** Whether the broker stores files. Throws for one that it cannot take, before anything is read and sent. */
async function storesFiles(files: ReadonlySet<LocalFile>, { stored, signal }: Uploads): Promise<boolean> {
  try {
    const { max_bytes } = await stored.page({ limit: 1 }, signal);
    const over = [...files].find(({ size }) => size > max_bytes);
    if (over) throw overQuota(over, max_bytes);
    return true;
  } catch (error) {
    // An older broker has no such path.
    const hasNone = error instanceof ErrandApiError && (error.code === "files_off" || error.status === 404);
    if (hasNone) return false;
    throw error;
  }
}

async function upload(file: LocalFile, { delegator, signal, onProgress }: Uploads): Promise<Part> {
  try {
    return await uploadFile(delegator, file, { signal, onProgress: (bytes) => onProgress(file, bytes) });
  } catch (error) {
    if (!(error instanceof ErrandApiError)) throw unreadable(file, error);
    const detail = `${oneLine(file.path)} (${sizeText(file.size)}) cannot be attached: ${error.message}`;
    throw new CliError({ ...error.problem, detail, recovery: recoveryFor(error) }, { cause: error });
  }
}

async function inline(file: LocalFile, left: number): Promise<Part> {
  if (file.size > left) throw tooLarge(file);
  try {
    const handle = await openRegular(file);
    const bytes = await handle.readFile().finally(() => handle.close());
    if (bytes.length !== file.size) throw new FileChangedError("it changed while it was read");
    return { raw: bytes.toString("base64"), mediaType: mediaTypeOf(file.name, bytes), filename: file.name };
  } catch (error) {
    throw unreadable(file, error);
  }
}

/** Errors of the file itself; any other, such as a signal's reason, is returned unchanged. */
function unreadable({ path }: LocalFile, error: unknown): unknown {
  if (error instanceof FileChangedError)
    return cannotAttach(path, error.message, "Run the command again when nothing writes to the file.");
  const isOfFile = error instanceof Error && "errno" in error;
  return isOfFile ? cannotAttach(path, error.message, "Pass a readable file.") : error;
}

const overQuota = ({ path, size }: LocalFile, maxBytes: number) =>
  cliError({
    code: "payload_too_large",
    category: "PROTOCOL",
    detail: `${oneLine(path)} (${sizeText(size)}) exceeds the ${sizeText(maxBytes)} of files that the broker stores for you`,
    recovery: "Attach less, or ask the operator to raise ERRAND_PRINCIPAL_FILE_BYTES.",
  });

const tooLarge = ({ path, size }: LocalFile) =>
  cliError({
    code: "payload_too_large",
    category: "PROTOCOL",
    detail: `with ${oneLine(path)} (${sizeText(size)}), the task exceeds ${sizeText(MAX_BYTES)}, the limit of a delegation; files grow by a third on the way`,
    recovery: "Attach less, or put the file where the agent can fetch it and send its URL.",
  });
