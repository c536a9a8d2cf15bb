/** The refusals of requests about files. */
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { Files } from "../broker.ts";

export const fileNotFound = (id: string): ErrandError =>
  new ErrandError("file_not_found", `There is no file ${id} that you may use.`, { details: { file_id: id } });

export const uploadNotFound = (id: string): ErrandError =>
  new ErrandError("upload_not_found", `There is no upload ${id} of yours that goes on.`);

export const uploadTaken = (id: string, offset: number): ErrandError =>
  new ErrandError("upload_offset", `Another request continues the upload ${id}.`, {
    details: { offset },
    recovery: `Ask for its offset with GET /v1/uploads/${id}, and continue there.`,
  });

export const keyOfAnother = (): ErrandError =>
  new ErrandError(
    "idempotency_conflict",
    "The Idempotency-Key was used for an upload of another length or SHA-256.",
    { recovery: "Use a new key for another upload." },
  );

export const wrongOffset = (offset: number, given: number): ErrandError =>
  new ErrandError("upload_offset", `The upload has ${offset} bytes; the request begins at ${given}.`, {
    details: { offset },
  });

export const fileTooLarge = (most: number): ErrandError =>
  new ErrandError("payload_too_large", `The file exceeds ${most} bytes.`, {
    details: { limit: "file_bytes", max_bytes: most },
    recovery: `Send at most ${most} bytes, or ask the operator to raise ERRAND_MAX_FILE_BYTES.`,
  });

export const tooLong = (length: number): ErrandError =>
  new ErrandError("payload_too_large", `More bytes arrived than the ${length} that were announced.`, {
    details: { limit: "upload_length", max_bytes: length },
    recovery: "Begin a new upload with the right length.",
  });

export function tooManyFiles(id: string): ErrandError {
  const most = LIMITS.delegation_files.value;
  return new ErrandError("limit_reached", `A delegation names at most ${most} files.`, {
    delegation_id: id,
    details: { limit: "delegation_files", max: most },
    recovery: "Put many files into one archive.",
  });
}

export function otherLength(known: number | undefined, offset: number): ErrandError {
  const reason =
    known === undefined ? `is less than the ${offset} bytes that arrived` : `is not ${known}, as announced`;
  return new ErrandError("invalid_request", `Upload-Length ${reason}.`, {
    details: { issues: [{ path: "Upload-Length", reason }] },
  });
}

/** For the name of the limit that a script returns. */
export function overQuota(limit: string, limits: Files): ErrandError {
  const most: Record<string, [number, string]> = {
    uploads: [LIMITS.uploads.value, "uploads in progress"],
    principal_files: [LIMITS.principal_files.value, "files"],
    principal_file_bytes: [limits.principalBytes, "bytes in files and uploads"],
  };
  const [value, what] = most[limit] ?? [0, limit];
  return new ErrandError("quota_exceeded", `You have too many ${what}; the limit is ${value}.`, {
    details: { quota: limit, limit: value },
    recovery:
      "Delete files that you no longer need with DELETE /v1/files/{id}, or erase delegations that name them.",
  });
}

export const storageFull = (): ErrandError =>
  new ErrandError("storage_full", "The storage for files is full.", { retry_after_seconds: 60 });

export const storageUnavailable = (cause: unknown): ErrandError =>
  new ErrandError("storage_unavailable", "The storage for files does not answer.", {
    retry_after_seconds: 5,
    cause,
  });

export function wrongHash(expected: string, found: string): ErrandError {
  return new ErrandError("hash_mismatch", "The content has another SHA-256 than the request says.", {
    details: { expected, sha256: found },
  });
}
