/** The files that an artifact contains. */
import type { Artifact, Part } from "../../schema/a2a.ts";

/** One file, with the name that the agent gave it. */
export interface Content {
  readonly name: string;
  readonly bytes: Buffer;
  /** The addresses of parts whose content is elsewhere. */
  readonly urls: readonly string[];
}

/** All parts in one file, because they may be chunks, unless parts have file names of their own. */
export function contentsOf({ artifactId, name, parts }: Artifact): Content[] {
  const filenames = new Set(parts.map(({ filename }) => filename));
  if (filenames.size > 1) {
    return parts.map((part) => contentOf(part.filename ?? name ?? artifactId, [part]));
  }
  const [filename] = filenames;
  return [contentOf(name ?? filename ?? artifactId, parts)];
}

function contentOf(name: string, parts: readonly Part[]): Content {
  const urls = parts.flatMap(({ url }) => url ?? []);
  return { name, bytes: joined(parts), urls };
}

/** Text, bytes and JSON of the parts, with `between` before a text that is not the first part. */
export function joined(parts: readonly Part[], between = ""): Buffer {
  const pieces: Buffer[] = [];
  for (const { text, raw, data } of parts) {
    if (text !== undefined && pieces.length > 0) pieces.push(Buffer.from(between));
    if (text !== undefined) pieces.push(Buffer.from(text));
    else if (raw !== undefined) pieces.push(Buffer.from(raw, "base64"));
    else if (data !== undefined) pieces.push(Buffer.from(`${JSON.stringify(data)}\n`));
  }
  return Buffer.concat(pieces);
}
