/**
 * A server that speaks S3, with one bucket. It checks signatures. Limit: s3rver takes a range that ends with the first byte
 * for one without an end.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseS3Url, type S3Credentials, type S3Place } from "../../src/engine/files/s3/place.ts";
import { S3Store } from "../../src/engine/files/s3/store.ts";
import { cachedInstall } from "./cached-install.ts";

const HERE = fileURLToPath(new URL("./s3-server/", import.meta.url));

export const BUCKET = "errand-files";
/** What s3rver takes. */
export const CREDENTIALS: S3Credentials = { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" };

export interface S3Server {
  readonly port: number;
  readonly url: string;
  /** As in the setting; the prefix is one's own for each `name`. */
  readonly place: (name: string, port?: number) => S3Place;
  /** The keys of the objects below the prefix, without it. */
  readonly keys: (place: S3Place) => string[];
  readonly stop: () => Promise<void>;
}

export async function startS3Server(): Promise<S3Server> {
  const packages = await cachedInstall("s3-server", HERE);
  const folder = mkdtempSync(join(tmpdir(), "errand-s3-"));
  const child = spawn(process.execPath, [join(HERE, "run.mjs"), packages, folder, BUCKET], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "close");
  const [line] = await Promise.race([
    once(child.stdout, "data"),
    ended.then(() => Promise.reject(new Error("the S3 server did not start"))),
  ]);
  const port = Number(String(line));
  const ending = "._S3rver_object";
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    place: (name, at = port) =>
      parseS3Url(`s3://${BUCKET}/${name}?endpoint=${encodeURIComponent(`http://127.0.0.1:${at}`)}`),
    keys: ({ prefix }) =>
      readdirSync(join(folder, BUCKET), { recursive: true, encoding: "utf8" })
        .filter((path) => path.startsWith(prefix) && path.endsWith(ending))
        .map((path) => path.slice(prefix.length, -ending.length))
        .sort(),
    stop: async () => {
      child.kill();
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** What the store logs. */
export interface LoggedCall {
  readonly status?: unknown;
  readonly code?: unknown;
}

export function openStore(place: S3Place, more: { credentials?: S3Credentials; timeoutMs?: number } = {}) {
  const logged: LoggedCall[] = [];
  const log = { warn: (fields: LoggedCall) => void logged.push(fields) };
  return { store: new S3Store({ place, credentials: CREDENTIALS, log, ...more }), logged };
}
