/**
 * One connection: serves its requests one after the other, and watches the progress of its reader. Limit: a pipelined
 * request waits for the previous response, so that no lease is granted that cannot be delivered.
 */
import type { Socket } from "node:net";
import { LIMITS } from "../../schema/limits.ts";

const STALLED_MS = LIMITS.stalled_seconds.value * 1000;
/** The slowest allowed pace of a reader: unread bytes get this much time in addition. */
const BYTES_A_SECOND = 64 * 1024;

export class Connection {
  /** Requests begun whose response is not complete. */
  busy = 0;
  #waiting: (() => void)[] | undefined;
  /** Bytes read by the last check, and when that number last changed. */
  #taken = -1;
  #takenAt = 0;

  /** Begins or queues the request; false if too many are queued. */
  begin(serve: () => void): boolean {
    if (this.busy === 0) {
      this.busy = 1;
      serve();
      return true;
    }
    this.#waiting ??= [];
    this.#waiting.push(serve);
    return this.#waiting.length <= LIMITS.pipelined.value;
  }

  /** The response is sent, or failed. */
  end(): void {
    const next = this.#waiting?.shift();
    if (next) next();
    else this.busy = 0;
  }

  /** Whether unread bytes wait and the reader has read none for too long. */
  isStalled(socket: Socket, now: number): boolean {
    const waits = socket.writableLength;
    if (waits === 0) {
      this.#taken = -1;
      return false;
    }
    const taken = socket.bytesWritten - waits;
    if (taken !== this.#taken) {
      this.#taken = taken;
      this.#takenAt = now;
    }
    return now - this.#takenAt > STALLED_MS + (waits / BYTES_A_SECOND) * 1000;
  }
}
