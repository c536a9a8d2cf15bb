/** Files in messages and artifacts: cut into parts to be sent, and put together again. */
import type { Artifact, Message, Part } from "../schema/a2a.ts";
import { fromBase64, toBase64 } from "../util/base64.ts";
import { type TypedSchema, validated } from "./typed-schema.ts";

/** The bytes of a file; a string is sent as UTF-8. */
export type FileContent = Uint8Array | string | Blob | AsyncIterable<Uint8Array>;

export interface FileOptions {
  /** Default: `text/plain` for a string, that of a Blob, otherwise `application/octet-stream`. */
  readonly mediaType?: string | undefined;
  /** The id of the artifact. Default: the name, so that a file of the same name replaces the one before. */
  readonly artifactId?: string | undefined;
  /** What it is, for people. */
  readonly description?: string | undefined;
}

/** Half a MiB in base64. A multiple of three, so that the base64 of a file is that of its pieces, one after the other. */
const PIECE_BYTES = 393_216;

/** Parts of a message, or of an artifact. */
type WithParts = Pick<Message, "parts"> | Pick<Artifact, "parts">;

/**
 * A small file as a part of a message: `{ parts: [{ text: "Read it" }, filePart("notes.txt", bytes)] }`. A message takes as
 * much as a request of the broker (1 MiB, unless its operator changed it).
 */
export function filePart(filename: string, content: Uint8Array | string, mediaType?: string): Part {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  return { raw: toBase64(bytes), mediaType: mediaType ?? typeOf(content), filename };
}

/**
 * The bytes of all files and texts of a message or an artifact, one after the other: of an artifact that is one file, the
 * file. Parts with a `url` or with data have none. Throws a DOMException for a part that is not base64.
 */
export function bytesOf(content: WithParts | null | undefined): Uint8Array<ArrayBuffer> {
  const pieces = (content?.parts ?? []).flatMap(({ raw, text }) =>
    raw !== undefined ? [fromBase64(raw)] : text !== undefined ? [new TextEncoder().encode(text)] : [],
  );
  return joined(pieces);
}

/** The data of a message or an artifact: its last data part, any JSON; undefined if it has none. */
export function dataOf(content: WithParts | null | undefined): unknown;
/** The same, checked by a schema of zod or of another library. Rejects with {@link InvalidDataError}. */
export function dataOf<T>(content: WithParts | null | undefined, schema: TypedSchema<T>): Promise<T>;
export function dataOf<T>(content: WithParts | null | undefined, schema?: TypedSchema<T>): unknown {
  const data = content?.parts.findLast((part) => "data" in part)?.data;
  return schema ? validated(schema, data, "the data do not fit") : data;
}

/** Sends the file as one artifact, in as many chunks as it needs. */
export async function sendFile(
  send: (
    artifact: Artifact,
    options: { readonly append: boolean; readonly lastChunk: boolean },
  ) => Promise<void>,
  name: string,
  content: FileContent,
  { mediaType = typeOf(content), artifactId = name, description }: FileOptions = {},
): Promise<void> {
  let append = false;
  const sendPiece = async (bytes: Uint8Array, lastChunk: boolean): Promise<void> => {
    const parts: Part[] = [{ raw: toBase64(bytes), mediaType, filename: name }];
    await send(
      { artifactId, name, ...(description !== undefined && { description }), parts },
      { append, lastChunk },
    );
    append = true;
  };
  // Each is sent when the next is there, because the last one says so.
  let held: Uint8Array | undefined;
  for await (const piece of piecesOf(content)) {
    if (held) await sendPiece(held, false);
    held = piece;
  }
  await sendPiece(held ?? new Uint8Array(), true);
}

function typeOf(content: FileContent): string {
  if (typeof content === "string") return "text/plain";
  return (content instanceof Blob && content.type) || "application/octet-stream";
}

/** All but the last one have the same size. */
async function* piecesOf(content: FileContent): AsyncGenerator<Uint8Array> {
  let waiting: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunksOf(content)) {
    waiting.push(chunk);
    size += chunk.length;
    if (size < PIECE_BYTES) continue;
    const all = joined(waiting);
    let at = 0;
    for (; all.length - at >= PIECE_BYTES; at += PIECE_BYTES) yield all.subarray(at, at + PIECE_BYTES);
    waiting = [all.subarray(at)];
    size = all.length - at;
  }
  if (size > 0) yield joined(waiting);
}

async function* chunksOf(content: FileContent): AsyncGenerator<Uint8Array> {
  if (typeof content === "string") yield new TextEncoder().encode(content);
  else if (content instanceof Uint8Array) yield content;
  else if (content instanceof Blob) {
    for (let at = 0; at < content.size; at += PIECE_BYTES)
      yield new Uint8Array(await content.slice(at, at + PIECE_BYTES).arrayBuffer());
  } else yield* content;
}

function joined(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}
