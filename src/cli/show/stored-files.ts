/** What backup and restore say of stored files, whose contents are beside Redis. */
import type { BackupSummary } from "../host.ts";
import { oneLine } from "./output.ts";

type Files = BackupSummary["files"];

const filesText = (count: number): string => `${count} stored file${count === 1 ? "" : "s"}`;
const namedText = (count: number): string => `It names ${filesText(count)}, but does not have their contents`;

/** Null: there is nothing to say. */
export function backupFilesText({ count, place }: Files): string | null {
  if (count === 0) return null;
  if (place === null)
    return `${namedText(count)}, and ERRAND_FILES says nowhere here: copy them from where the broker has them.`;
  return `${namedText(count)}: copy ${oneLine(place)} now, after the backup.`;
}

export const checkedFilesText = ({ count }: Files): string | null =>
  count === 0 ? null : `${namedText(count)}: those are in your copy of the folder or the bucket.`;

export function restoredFilesText({ count, place, missing }: Files): string | null {
  if (count === 0) return null;
  const where = place === null ? "" : oneLine(place);
  if (missing === null)
    return `${namedText(count)}, and ${where} does not answer now. Copy your copy of them there if it is not there.`;
  if (missing === 0) return `The contents of all ${filesText(count)} are in ${where}.`;
  const without = `${missing} of ${filesText(count)} ${missing === 1 ? "has no content" : "have no contents"}`;
  const reads = "Until then reads answer file_not_found; a new upload of the same content repairs a file.";
  return place === null
    ? `${without}, because ERRAND_FILES says nowhere. Set it to where your copy of them is. ${reads}`
    : `${without} in ${where}. Copy your copy of them there. ${reads}`;
}
