/**
 * One connection: serves its requests one after the other, and watches the progress of its reader. Limit: a pipelined
 * request waits for the previous response, so that no lease is granted that cannot be delivered.
 */
import type { Socket } from "node:net";
import { LIMITS } from "../../schema/limits.ts";

const STALLED_MS = LIMITS.stalled_seconds.value * 1000;
/** The slowest pace allowed: unread bytes get the time to be read at this pace, in addition to {@link STALLED_MS}. */
const BYTES_A_SECOND = 64 * 1024;

export class Connection {
  /** Whether a response is incomplete. */
  isBusy = false;
  #waiting: (() => void)[] | undefined;
  /** The bytes that the reader had read at the last check, and when that number last changed. */
  #bytesRead = -1;
  #readAt = 0;

  /** Begins or queues the request; false if too many are queued. */
  begin(serve: () => void): boolean {
    if (!this.isBusy) {
      this.isBusy = true;
      serve();
      return true;
    }
    this.#waiting ??= [];
    this.#waiting.push(serve);
    return this.#waiting.length <= LIMITS.pipelined.value;
  }

  /** The response is sent or has failed: begins the next request. */
  end(): void {
    const next = this.#waiting?.shift();
    if (next) next();
    else this.isBusy = false;
  }

  /** Whether there are unread bytes and the reader has read none for too long. */
  isStalled(socket: Socket, now: number): boolean {
    const unread = socket.writableLength;
    if (unread === 0) {
      this.#bytesRead = -1;
      return false;
    }
    const read = socket.bytesWritten - unread;
    if (read !== this.#bytesRead) {
      this.#bytesRead = read;
      this.#readAt = now;
    }
    return now - this.#readAt > STALLED_MS + (unread / BYTES_A_SECOND) * 1000;
  }
}
