/** A broker that stores files, and the calls for files. */
import { createHash } from "node:crypto";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { DiskStore } from "../../src/engine/files/disk-store.ts";
import type { FileStore } from "../../src/engine/files/store.ts";
import { OPERATOR, startBroker, type TestOptions } from "./broker.ts";

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

/** `stored`: the names of the contents in the store. */
export async function startFileBroker(
  { maxBytes = 10_000_000, principalBytes = 20_000_000, wrap = (store) => store }: FileOptions = {},
  options: TestOptions = {},
) {
  const folder = await tempFolder();
  const files = { store: wrap(new DiskStore(folder)), maxBytes, principalBytes };
  const broker = await startBroker({ files, ...options });
  const stored = async (): Promise<string[]> => {
    const found = await readdir(folder, { recursive: true, withFileTypes: true });
    return found.filter((one) => one.isFile()).map(({ name }) => name);
  };
  return { ...broker, folder, files, stored };
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
