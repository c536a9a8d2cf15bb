/** The files of a task as parts of its message: a few bytes in it, the others uploaded before it is sent. */
import { type Signal, signal } from "@preact/signals";
import { ErrandApiError } from "../../client/errors.ts";
import { filePart } from "../../client/files.ts";
import type { Part } from "../../schema/a2a.ts";
import type { Connection } from "../data/connection.ts";
import { session } from "../session/session.ts";
import { sizeText } from "../ui/bytes.ts";

/** Together, in bytes: what goes in the message. */
const INLINE_BYTES = 393_216;
/** The same where the broker stores no files: the page has to hold them in memory, and the broker may take less. */
const MOST_INLINE_BYTES = 32 * 1024 * 1024;

interface Upload {
  readonly part: Promise<Part>;
  /** The bytes that the broker has. */
  readonly bytes: Signal<number>;
  readonly stop: AbortController;
}

/** Each file is uploaded once, also if it is sent again. */
export const uploads = signal<ReadonlyMap<File, Upload>>(new Map());

/** The upload that is on its way; undefined: none. */
export function runningUpload(files: readonly File[]): [File, Upload] | undefined {
  return [...uploads.value].find(([file, { bytes }]) => files.includes(file) && bytes.value < file.size);
}

/** The broker may have deleted what was uploaded long ago. */
export function forgetUploads(files: Iterable<File> = uploads.peek().keys()): void {
  const others = new Map(uploads.peek());
  for (const file of files) {
    others.get(file)?.stop.abort();
    others.delete(file);
  }
  uploads.value = others;
}

/** Who has left uploads nothing more. */
session.subscribe(() => forgetUploads());

/** `check` throws once they are not to be sent any more. */
export async function partsOfFiles(
  files: readonly File[],
  connection: Connection,
  check: () => void,
): Promise<readonly Part[]> {
  const parts: Part[] = [];
  let room = INLINE_BYTES;
  try {
    for (const file of files) {
      check();
      const isSmall = file.size <= room;
      if (isSmall) room -= file.size;
      parts.push(await (isSmall ? inline(file) : uploaded(file, connection)));
    }
    return parts;
  } catch (error) {
    if (!(error instanceof ErrandApiError) || error.code !== "files_off") throw error;
    if (files.reduce((sum, { size }) => sum + size, 0) > MOST_INLINE_BYTES) throw TOO_LARGE;
    return Promise.all(files.map(inline));
  }
}

const TOO_LARGE = new Error(
  `This broker stores no files, and together these are larger than ${sizeText(MOST_INLINE_BYTES)}.`,
);

const inline = async (file: File): Promise<Part> =>
  filePart(file.name, new Uint8Array(await file.arrayBuffer()), file.type || undefined);

async function uploaded(file: File, { delegator }: Connection): Promise<Part> {
  const running = uploads.peek().get(file);
  if (running) return running.part;
  const [bytes, stop] = [signal(0), new AbortController()];
  const onProgress = (done: number) => {
    bytes.value = done;
  };
  const part = delegator.upload(file.name, file, { onProgress, signal: stop.signal });
  uploads.value = new Map([...uploads.peek(), [file, { part, bytes, stop }]]);
  try {
    return await part;
  } catch (error) {
    // It may be on its way again.
    if (uploads.peek().get(file)?.stop === stop) forgetUploads([file]);
    throw error;
  }
}
