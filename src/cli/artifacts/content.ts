/** The files that an artifact contains: bytes in its parts, and files of the broker that they name. */
import type { Artifact, Part } from "../../schema/a2a.ts";
import { isStored, sizeOfStored } from "../../schema/file-url.ts";

/** One file, with the name that the agent gave it. */
export interface Content {
  readonly name: string;
  readonly parts: readonly Part[];
}

/** All parts in one file, because they may be chunks, unless parts have file names of their own. */
export function contentsOf({ artifactId, name, parts }: Artifact): Content[] {
  const filenames = new Set(parts.map(({ filename }) => filename));
  if (filenames.size > 1) {
    return parts.map((part) => ({ name: part.filename ?? name ?? artifactId, parts: [part] }));
  }
  const [filename] = filenames;
  return [{ name: name ?? filename ?? artifactId, parts }];
}

/** Text, bytes and JSON in the parts, with `between` before a text that is not the first part. */
export function joined(parts: readonly Part[], between = ""): Buffer {
  const pieces: Buffer[] = [];
  for (const part of parts) {
    if (part.text !== undefined && pieces.length > 0) pieces.push(Buffer.from(between));
    const bytes = bytesIn(part);
    if (bytes !== undefined) pieces.push(bytes);
  }
  return Buffer.concat(pieces);
}

/** What the part has in it; undefined for one that names its content. */
export function bytesIn({ text, raw, data }: Part): Buffer | undefined {
  if (text !== undefined) return Buffer.from(text);
  if (raw !== undefined) return Buffer.from(raw, "base64");
  return data === undefined ? undefined : Buffer.from(`${JSON.stringify(data)}\n`);
}

/** The addresses of parts whose content is on other servers. */
export const urlsElsewhere = (parts: readonly Part[]): string[] =>
  parts.flatMap((part) => (part.url === undefined || isStored(part) ? [] : part.url));

/** The bytes in the parts and of files of the broker, whose size is in the part. */
export const sizeOf = (parts: readonly Part[]): number =>
  parts.reduce(
    (sum, part) => sum + (bytesIn(part)?.length ?? (isStored(part) ? (sizeOfStored(part) ?? 0) : 0)),
    0,
  );
