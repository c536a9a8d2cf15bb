/**
 * The file `gateway.json` in the data directory. With it, a gateway announces its URL to the CLI on this machine, and to
 * other gateways that start on the same data directory. The first of them owns the file.
 */
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { Log } from "./telemetry/log.ts";

const FILE = "gateway.json";
const RETRY_MS = 1_000;
const announcementSchema = z
  .string()
  .transform((text, ctx) => {
    try {
      const announced: unknown = JSON.parse(text);
      return announced;
    } catch {
      ctx.addIssue({ code: "custom", message: "is not JSON" });
      return z.NEVER;
    }
  })
  .pipe(z.object({ url: z.string(), port: z.number(), pid: z.number().int().positive() }));
type Announcement = z.output<typeof announcementSchema>;

/** Writes the file. With too many open files, it retries until the signal aborts. */
export async function announce(
  dataDir: string,
  { url, port }: { readonly url: string; readonly port: number },
  log: Log,
  stop: AbortSignal,
): Promise<void> {
  const write = async () => {
    // While the first gateway runs, the file stays its own.
    if (await findRunningGateway(dataDir)) return;
    const text = `${JSON.stringify({ url, port, pid: process.pid })}\n`;
    await writeFile(join(dataDir, FILE), text, { mode: 0o600 });
  };
  try {
    await write();
  } catch (error) {
    if (!isTooManyFiles(error)) throw error;
    // Thousands of clients may have connected already. Serve them, and retry the file later.
    log.warn(
      "too many open files: raise the limit (LimitNOFILE, ulimit -n) above the number of expected connections",
    );
    const timer = setInterval(() => {
      if (stop.aborted) clearInterval(timer);
      else
        write().then(
          () => clearInterval(timer),
          () => undefined,
        );
    }, RETRY_MS).unref();
  }
}

const isTooManyFiles = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "EMFILE" || error.code === "ENFILE");

/** The other gateway that announced itself in this data directory, if it still runs. */
export async function findRunningGateway(dataDir: string): Promise<Announcement | null> {
  const text = await readFile(join(dataDir, FILE), "utf8").catch(() => "");
  const { data } = announcementSchema.safeParse(text);
  if (data === undefined || data.pid === process.pid) return null;
  try {
    process.kill(data.pid, 0);
    return data;
  } catch {
    return null;
  }
}

/** Removes the file, unless another gateway owns it. */
export async function removeAnnouncement(dataDir: string): Promise<void> {
  const path = join(dataDir, FILE);
  const text = await readFile(path, "utf8").catch(() => "");
  if (text.includes(`"pid":${process.pid}}`)) await rm(path, { force: true });
}
