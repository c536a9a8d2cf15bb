/** The files of a broker, as the verbs use them: where their content is, and how much of it there may be. */
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import { DISK_LOW_BYTES } from "../../schema/status.ts";
import type { Broker, Files } from "../broker.ts";
import { storageFull } from "./file-errors.ts";
import type { FileStore } from "./store.ts";

/** To read and write files. */
export type UsesFiles = Pick<Broker, "agents" | "clock" | "files" | "publicUrl" | "redis">;

/** How long a file is kept that no delegation names, and an upload that is not continued. */
export const KEEP_MS = LIMITS.file_hours.value * 3_600_000;

/** Throws `files_off` if this broker stores no files. */
export function requireFiles({ files }: Pick<Broker, "files">): Files {
  if (files === null) throw new ErrandError("files_off", "This broker stores no files.");
  return files;
}

/** Throws `storage_full` unless there is room for so many bytes beside what Redis may need on the same disk. */
export async function requireSpace(store: FileStore, bytes: number): Promise<void> {
  const free = await store.freeBytes();
  if (free !== null && free - bytes < DISK_LOW_BYTES) throw storageFull();
}

export const nowOf = ({ clock }: Pick<Broker, "clock">): number => Date.now() + clock.offset_ms;
