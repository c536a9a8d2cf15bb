/** Logs when the disk of the data directory gets short of space, and when it has space again. */
import { type DiskSpace, readDiskSpace } from "../redis/disk-space.ts";
import { DISK_LOW_BYTES } from "../schema/status.ts";
import type { Log } from "../telemetry/log.ts";

const CHECK_MS = 30_000;

export class DiskWatch {
  readonly #folder: string;
  readonly #log: Log;
  readonly #read: (folder: string) => Promise<DiskSpace | null>;
  #isLow = false;
  #timer: NodeJS.Timeout | undefined;

  /** `read` is replaced in tests. */
  constructor(folder: string, log: Log, read = readDiskSpace) {
    this.#folder = folder;
    this.#log = log;
    this.#read = read;
  }

  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.check(), CHECK_MS).unref();
    await this.check();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async check(): Promise<void> {
    const space = await this.#read(this.#folder);
    if (space === null) return;
    const isLow = space.free_bytes < DISK_LOW_BYTES;
    if (isLow === this.#isLow) return;
    this.#isLow = isLow;
    if (isLow)
      this.#log.warn(
        { data_dir: this.#folder, ...space, low_below_bytes: DISK_LOW_BYTES },
        "the disk of the data directory is nearly full; when it is, Redis ends and nothing is accepted",
      );
    else
      this.#log.info({ data_dir: this.#folder, ...space }, "the disk of the data directory has space again");
  }
}
