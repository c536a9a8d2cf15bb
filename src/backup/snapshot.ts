/**
 * Asks Redis for a snapshot of all its data at one point in time, as a replica does (SYNC). Redis forks for it, and goes on
 * serving. Limit: providers that forbid SYNC have snapshots of their own.
 */
import type { ServerConnection } from "../redis/connect.ts";
import { RdbError } from "./rdb-strings.ts";

/** Redis sends an empty line each second while it prepares the snapshot. */
const SILENCE_MS = 60_000;

/** Redis does not give a snapshot to this user, or not now. */
export class SnapshotRefused extends Error {
  override readonly name = "SnapshotRefused";
}

/**
 * Yields the snapshot as an RDB file. Takes the connection over, after its driver has signed in: it cannot be used for
 * anything else, before or after.
 */
export async function* takeSnapshot(
  redis: ServerConnection,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  // The end of the stream below is reported here, too.
  redis.on("error", () => undefined);
  await redis.ping();
  // Redis marks the end of the snapshot, instead of writing a file first; and sends no later writes.
  await redis.call("REPLCONF", "capa", "eof").catch(() => undefined);
  await redis.call("REPLCONF", "rdb-only", "1").catch(() => undefined);
  const { stream } = redis;
  stream.removeAllListeners("data");
  stream.setTimeout(SILENCE_MS, () => stream.destroy(new RdbError("Redis stopped sending its snapshot")));
  const stop = () => stream.destroy();
  signal.addEventListener("abort", stop, { once: true });
  stream.write("SYNC\r\n");
  try {
    yield* withoutHead(stream);
    signal.throwIfAborted();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof SnapshotRefused || error instanceof RdbError) throw error;
    throw new RdbError(
      `the connection to Redis broke: ${error instanceof Error ? error.message : "unknown"}`,
    );
  } finally {
    signal.removeEventListener("abort", stop);
    redis.disconnect();
  }
}

/** The bytes after the first line that is not empty. That line announces the snapshot, or is an error. */
async function* withoutHead(stream: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  let head = "";
  let isFound = false;
  for await (const chunk of stream) {
    if (!Buffer.isBuffer(chunk)) throw new TypeError("the connection does not yield bytes");
    if (isFound) {
      yield chunk;
      continue;
    }
    head = `${head}${chunk.toString("latin1")}`.trimStart();
    const end = head.indexOf("\n");
    if (end < 0) continue;
    if (!head.startsWith("$")) throw new SnapshotRefused(head.slice(0, end).trim().replace(/^-/, ""));
    isFound = true;
    yield Buffer.from(head.slice(end + 1), "latin1");
  }
}
