/** Where a broker with these settings stores files. */
import { join, resolve } from "node:path";
import type { Config } from "../config.ts";
import { DiskStore } from "../engine/files/disk-store.ts";
import { S3Store } from "../engine/files/s3/store.ts";
import type { FileStore } from "../engine/files/store.ts";
import type { RedisTarget } from "../redis/connect.ts";
import type { Log } from "../telemetry/log.ts";

/**
 * Null: nowhere. The folder of the private Redis has the files, too. Gateways that share another Redis may be on several
 * machines.
 */
export function fileStoreOf(config: Config, { socket }: RedisTarget, log: Log): FileStore | null {
  const dataDir = resolve(config.ERRAND_DATA_DIR ?? ".errand");
  const place = config.ERRAND_FILES ?? (socket === undefined ? "off" : join(dataDir, "files"));
  if (place === "off") return null;
  if (typeof place === "string") return new DiskStore(resolve(place));
  const { s3Credentials: credentials } = config;
  if (credentials === undefined) throw new Error("the configuration has a bucket without a key");
  return new S3Store({ place, credentials, log });
}
