/** The media type of a file, by its name; where that says nothing, by its bytes. */
import { getMimeType } from "hono/utils/mime";
import { isText } from "../is-text.ts";

const BINARY = "application/octet-stream";
const TEXT = "text/plain; charset=utf-8";

/** So many bytes show whether a file is text. */
export const SAMPLE_BYTES = 64 * 1024;
/** UTF-8 has no longer characters. */
const CHARACTER_BYTES = 4;

/** Text with an unknown extension, or with that of a video (`.ts`), is plain text. */
export function mediaTypeOf(filename: string, bytes: Uint8Array): string {
  const named = getMimeType(filename);
  if (named !== undefined && !named.startsWith("video/")) return named;
  return isText(bytes) ? TEXT : (named ?? BINARY);
}

/** The same for a file of which only the first bytes are at hand: they may end within a character. */
export function mediaTypeFor(filename: string, sample: Uint8Array, size: number): string {
  if (sample.length >= size) return mediaTypeOf(filename, sample);
  const ends = Array.from({ length: CHARACTER_BYTES }, (_, cut) => sample.subarray(0, sample.length - cut));
  return mediaTypeOf(filename, ends.find(isText) ?? sample);
}
