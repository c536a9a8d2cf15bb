/** Files in messages and artifacts: cut into parts to be sent, and put together again. */
import type { Artifact, Message, Part } from "../schema/a2a.ts";
import { isStored } from "../schema/file-url.ts";
import { fromBase64, toBase64 } from "../util/base64.ts";
import { joined } from "../util/joined.ts";
import { ErrandApiError } from "./errors.ts";
import { type FileContent, lengthOf, piecesOf, typeOf } from "./pieces.ts";
import { type TypedSchema, validated } from "./typed-schema.ts";

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
 * file. Parts with data and links to other servers have none. Throws a DOMException for a part that is not base64, and a
 * TypeError for a file of the broker: {@link Delegator.download} loads it.
 */
export function bytesOf(content: WithParts | null | undefined): Uint8Array<ArrayBuffer> {
  const pieces = (content?.parts ?? []).flatMap(({ raw, text, url }) => {
    if (isStored({ url }))
      throw new TypeError("a part names a file of the broker: delegator.download loads it");
    return raw !== undefined ? [fromBase64(raw)] : text !== undefined ? [new TextEncoder().encode(text)] : [];
  });
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

export interface FileSender {
  /** Adds a chunk to the artifact. */
  readonly send: (
    artifact: Artifact,
    options: { readonly append: boolean; readonly lastChunk: boolean },
  ) => Promise<void>;
  /** Uploads the file and returns the part that names it. Throws `files_off` if the broker stores no files. */
  readonly upload: (name: string, content: FileContent, mediaType: string) => Promise<Part>;
}

/** Sends the file as one artifact: a small one in it, a larger one by its URL. */
export async function sendFile(
  { send, upload }: FileSender,
  name: string,
  content: FileContent,
  { mediaType = typeOf(content), artifactId = name, description }: FileOptions = {},
): Promise<void> {
  const sendPart = (part: Part, append: boolean, lastChunk: boolean): Promise<void> =>
    send(
      { artifactId, name, ...(description !== undefined && { description }), parts: [part] },
      { append, lastChunk },
    );
  const inline = (bytes: Uint8Array): Part => ({ raw: toBase64(bytes), mediaType, filename: name });
  const pieces = piecesOf(content, PIECE_BYTES);
  const first = (await pieces.next()).value ?? new Uint8Array();
  const second = (await pieces.next()).value;
  if (second === undefined) return sendPart(inline(first), false, true);
  // Read ahead, because the broker may store no files.
  const rest = lengthOf(content) === undefined ? chain([first, second], pieces) : content;
  try {
    return await sendPart(await upload(name, rest, mediaType), false, true);
  } catch (error) {
    if (!isFilesOff(error)) throw error;
  }
  // Each is sent when the next is there, because the last one says so.
  let append = false;
  let held = first;
  for await (const piece of chain([second], pieces)) {
    await sendPart(inline(held), append, false);
    append = true;
    held = piece;
  }
  await sendPart(inline(held), append, true);
}

async function* chain(
  read: readonly Uint8Array[],
  rest: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield* read;
  yield* rest;
}

const isFilesOff = (error: unknown): boolean => error instanceof ErrandApiError && error.code === "files_off";
