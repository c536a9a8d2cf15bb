/**
 * Files of the broker in a message to an A2A server, which has no token to load them: they are put into the message. Limit:
 * larger ones are refused, because servers bound the size of a request.
 */
import type { Message, Part } from "../schema/a2a.ts";
import { ERRORS, ErrandError } from "../schema/errors.ts";
import { isStored, sizeOfStored } from "../schema/file-url.ts";
import { toBase64 } from "../util/base64.ts";
import { joined } from "../util/joined.ts";
import { RemoteError } from "./remote-error.ts";

/** All files of one message. */
const MAX_BYTES = 1024 * 1024;

/** The files of a message are too large for the A2A server. */
export class FilesTooLargeError extends Error {
  override readonly name = "FilesTooLargeError";
}

/** The bytes of a file of the broker that the part names. */
export type LoadFile = (part: Part) => AsyncIterable<Uint8Array>;

/** The message with its files. Parts with the URLs of other servers stay as they are. */
export async function withFiles(message: Message, load: LoadFile): Promise<Message> {
  const stored = message.parts.filter(isStored);
  const known = stored.reduce((sum, part) => sum + (sizeOfStored(part) ?? 0), 0);
  if (known > MAX_BYTES) throw tooLarge();
  let left = MAX_BYTES;
  const parts: Part[] = [];
  for (const part of message.parts) {
    const { url: _url, ...rest } = part;
    if (!isStored(part)) parts.push(part);
    else {
      const bytes = await read(part, load, left);
      left -= bytes.length;
      parts.push({ ...rest, raw: toBase64(bytes) });
    }
  }
  return { ...message, parts };
}

async function read(part: Part, load: LoadFile, left: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of load(part)) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > left) throw tooLarge();
    }
  } catch (error) {
    if (error instanceof FilesTooLargeError) throw error;
    // Its text names the file and the broker.
    const what = "a file of the message cannot be loaded from the broker";
    if (!mayPass(error)) throw new RemoteError("failed", what, { retryable: true });
    throw new RemoteError("unsent", what, { pause: "files of its work cannot be loaded" });
  }
  return joined(chunks);
}

/** As the broker says, to its own relay or by its API. */
const mayPass = (error: unknown): boolean =>
  error instanceof ErrandError
    ? ERRORS[error.code].retryable
    : error instanceof Error && "retryable" in error && error.retryable === true;

const tooLarge = (): FilesTooLargeError =>
  new FilesTooLargeError(
    "The files of the message exceed 1 MiB, the most that is passed on to an A2A server.",
  );
