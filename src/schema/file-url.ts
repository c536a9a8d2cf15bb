/** Files by their URLs. Without zod, so that pages can load it at once. */
import type { Part } from "./a2a.ts";

/** The SHA-256 in a file's id. */
export const sha256OfFile = (id: string): string => id.slice(-64);

/** The path of a file, as the end of its URL: of an upload of one's own, or of one that a delegation names. */
const FILE_PATH =
  /\/v1\/(?:delegations\/(dlg_[0-9a-z]{1,3}_[0-9a-z]{26})\/)?files\/(fil_[0-9a-f]{16}_[0-9a-f]{64})$/;

/** The ids in the URL of a file of a broker; undefined for every other URL. */
export function fileOfUrl(
  url: string,
): { readonly file_id: string; readonly delegation_id: string | undefined } | undefined {
  const [, delegation_id, file_id] = FILE_PATH.exec(url) ?? [];
  if (file_id === undefined) return undefined;
  return { file_id, delegation_id };
}

/** Whether the part names a file of a broker. */
export const isStored = ({ url }: Pick<Part, "url">): boolean =>
  url !== undefined && fileOfUrl(url) !== undefined;

/** The bytes of the file that the part names, as the broker says; undefined: not known. */
export const sizeOfStored = ({ metadata }: Pick<Part, "metadata">): number | undefined =>
  typeof metadata?.size === "number" ? metadata.size : undefined;
