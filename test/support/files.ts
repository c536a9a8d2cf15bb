/** A broker that stores files, and the calls for files. With ERRAND_TEST_FILES=s3 the files are in a bucket. */
import { createHash } from "node:crypto";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { DiskStore } from "../../src/engine/files/disk-store.ts";
import type { FileStore } from "../../src/engine/files/store.ts";
import { OPERATOR, startBroker, type TestOptions } from "./broker.ts";
import { openStore, startS3Server } from "./s3-server.ts";

export const sha256 = (bytes: Uint8Array | string): string =>
  createHash("sha256").update(bytes).digest("hex");

/** A folder that is deleted after the test. */
export async function tempFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "errand-files-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

interface FileOptions {
  readonly maxBytes?: number;
  readonly principalBytes?: number;
  /** Around the store of the broker. */
  readonly wrap?: (store: FileStore) => FileStore;
}

interface Place {
  readonly store: FileStore;
  /** The names of the contents in the store. */
  readonly stored: () => Promise<string[]>;
}

async function folderPlace(): Promise<Place> {
  const folder = await tempFolder();
  const stored = async (): Promise<string[]> => {
    const found = await readdir(folder, { recursive: true, withFileTypes: true });
    return found.filter((one) => one.isFile()).map(({ name }) => name);
  };
  return { store: new DiskStore(folder), stored };
}

async function bucketPlace(): Promise<Place> {
  const server = await startS3Server();
  onTestFinished(server.stop);
  const place = server.place("files");
  const stored = async () => [...new Set(server.keys(place).map((key) => key.slice(0, key.indexOf("/"))))];
  return { store: openStore(place).store, stored };
}

export const placeOfFiles = (): Promise<Place> =>
  process.env.ERRAND_TEST_FILES === "s3" ? bucketPlace() : folderPlace();

/** Files in a place of the test. */
export const fileOptions = async () => ({
  store: (await placeOfFiles()).store,
  maxBytes: 10_000_000,
  principalBytes: 20_000_000,
});

export async function startFileBroker(
  { maxBytes = 10_000_000, principalBytes = 20_000_000, wrap = (store) => store }: FileOptions = {},
  options: TestOptions = {},
) {
  const { store, stored } = await placeOfFiles();
  const files = { store: wrap(store), maxBytes, principalBytes };
  const broker = await startBroker({ files, ...options });
  return { ...broker, files, stored };
}

/** The calls of one principal for files; bodies are bytes. */
export function fileCalls(url: string, token: string = OPERATOR) {
  const call = async (
    method: string,
    path: string,
    body?: Uint8Array<ArrayBuffer> | string | ReadableStream<Uint8Array>,
    headers: Record<string, string> = {},
  ) => {
    const init = {
      method,
      headers: { authorization: `Bearer ${token}`, ...headers },
      ...(body !== undefined && { body: typeof body === "string" ? new TextEncoder().encode(body) : body }),
      ...(body instanceof ReadableStream && { duplex: "half" }),
    };
    const answer = await fetch(path.startsWith("http") ? path : `${url}${path}`, init);
    const bytes = new Uint8Array(await answer.arrayBuffer());
    const isJson = answer.headers.get("content-type")?.includes("json");
    return {
      status: answer.status,
      headers: answer.headers,
      bytes,
      text: new TextDecoder().decode(bytes),
      // Untyped, as in broker.ts.
      body: isJson && bytes.length > 0 ? JSON.parse(new TextDecoder().decode(bytes)) : null,
    };
  };
  return {
    call,
    upload: (content: Uint8Array<ArrayBuffer> | string, query = "") =>
      call("POST", `/v1/files${query}`, content),
    begin: (length: number | undefined, query = "") =>
      call("POST", `/v1/uploads${query}`, undefined, {
        ...(length === undefined ? { "upload-defer-length": "1" } : { "upload-length": String(length) }),
      }),
    patch: (id: string, offset: number, content: Uint8Array<ArrayBuffer> | string, headers = {}) =>
      call("PATCH", `/v1/uploads/${id}`, content, { "upload-offset": String(offset), ...headers }),
  };
}
