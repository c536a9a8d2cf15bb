/** The content of a file, cut into pieces of one size. */
import { joined } from "../util/joined.ts";

/** The bytes of a file; a string is sent as UTF-8. */
export type FileContent = Uint8Array | string | Blob | AsyncIterable<Uint8Array>;

export function typeOf(content: FileContent): string {
  if (typeof content === "string") return "text/plain";
  return (content instanceof Blob && content.type) || "application/octet-stream";
}

/** How many bytes there are; undefined for a stream. */
export function lengthOf(content: FileContent): number | undefined {
  if (typeof content === "string") return new TextEncoder().encode(content).length;
  if (content instanceof Uint8Array) return content.length;
  return content instanceof Blob ? content.size : undefined;
}

/** All but the last one have `size` bytes. */
export async function* piecesOf(content: FileContent, size: number): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let waiting: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunksOf(content, size)) {
    waiting.push(chunk);
    bytes += chunk.length;
    if (bytes < size) continue;
    const all = joined(waiting);
    let at = 0;
    for (; all.length - at >= size; at += size) yield all.subarray(at, at + size);
    waiting = [all.subarray(at)];
    bytes = all.length - at;
  }
  if (bytes > 0) yield joined(waiting);
}

async function* chunksOf(content: FileContent, size: number): AsyncGenerator<Uint8Array> {
  if (typeof content === "string") yield new TextEncoder().encode(content);
  else if (content instanceof Uint8Array) yield content;
  else if (content instanceof Blob) {
    for (let at = 0; at < content.size; at += size)
      yield new Uint8Array(await content.slice(at, at + size).arrayBuffer());
  } else yield* content;
}
