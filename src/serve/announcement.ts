/**
 * The file `gateway.json` in the data directory. With it, a gateway announces its URL to the CLI on this machine, and to
 * other gateways that start on the same data directory. The first of them owns the file; when it is gone, one of the
 * others takes the file over.
 */
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import * as z from "zod";
import type { Log } from "../telemetry/log.ts";
import { parseJson } from "../util/parse-json.ts";

const FILE = "gateway.json";
/** How often a gateway checks whether the file names a gateway that runs. */
const CHECK_MS = 1_000;
const CONNECT_MS = 1_000;
const announcementSchema = z.object({
  url: z.string(),
  port: z.number(),
  pid: z.number().int().positive(),
});
export type Announcement = z.output<typeof announcementSchema>;

export interface Announced {
  /** Whether the file named this gateway when {@link announce} returned. */
  readonly isFound: boolean;
  /** The gateway that the file named instead. */
  readonly other: Announcement | null;
  /** Removes the file, unless another gateway owns it. */
  readonly withdraw: () => Promise<void>;
}

/** Writes the file now, or as soon as the gateway that owns it is gone. With too many open files, it retries. */
export async function announce(
  dataDir: string,
  { url, port }: { readonly url: string; readonly port: number },
  log: Log,
): Promise<Announced> {
  const path = join(dataDir, FILE);
  const text = `${JSON.stringify({ url, port, pid: process.pid })}\n`;
  /** Returns the other gateway that owns the file. */
  const claim = async (): Promise<Announcement | null> => {
    const other = await findRunningGateway(dataDir);
    if (other !== null || (await readFile(path, "utf8").catch(() => "")) === text) return other;
    // Renamed, so that no reader sees half a file.
    const draft = `${path}.${process.pid}`;
    await writeFile(draft, text, { mode: 0o600 });
    await rename(draft, path);
    return null;
  };
  let isFound = false;
  let other: Announcement | null = null;
  try {
    other = await claim();
    isFound = other === null;
  } catch (error) {
    if (!isTooManyFiles(error)) throw error;
    // Thousands of clients may have connected already. Serve them, and retry the file later.
    log.warn(
      "too many open files: raise the limit (LimitNOFILE, ulimit -n) above the number of expected connections",
    );
  }
  let checking: Promise<unknown> = Promise.resolve();
  const timer = setInterval(() => {
    checking = claim().catch(() => undefined);
  }, CHECK_MS).unref();
  const withdraw = async () => {
    clearInterval(timer);
    await checking;
    if ((await readFile(path, "utf8").catch(() => "")) === text) await rm(path, { force: true });
  };
  return { isFound, other, withdraw };
}

const isTooManyFiles = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "EMFILE" || error.code === "ENFILE");

/**
 * The other gateway that announced itself in this data directory, if it still runs. After a crash, its process id may be
 * that of any other process, so its address must take connections, too.
 */
export async function findRunningGateway(dataDir: string): Promise<Announcement | null> {
  const text = await readFile(join(dataDir, FILE), "utf8").catch(() => "");
  const { data } = announcementSchema.safeParse(parseJson(text));
  if (data === undefined || data.pid === process.pid) return null;
  return isAlive(data.pid) && (await takesConnections(data)) ? data : null;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // It is alive, and another user's.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** Only a refusal says that nobody listens. A busy gateway may answer late. */
function takesConnections({ url, port }: Announcement): Promise<boolean> {
  if (!URL.canParse(url)) return Promise.resolve(false);
  const host = new URL(url).hostname.replace(/^\[|\]$/g, "");
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: CONNECT_MS });
    const end = (isTaken: boolean) => {
      socket.destroy();
      resolve(isTaken);
    };
    socket.once("connect", () => end(true)).once("timeout", () => end(true));
    socket.once("error", (error) => end(!("code" in error && error.code === "ECONNREFUSED")));
  });
}
