/**
 * One connection: its requests in turn, and the progress of its reader. Limit: a pipelined request waits until the one
 * before it is answered, so that no lease is granted that cannot be delivered.
 */
import type { Socket } from "node:net";
import { LIMITS } from "../../schema/limits.ts";

const STALLED_MS = LIMITS.stalled_seconds.value * 1000;
/** For each of these unread, a reader has one more second. */
const BYTES_A_SECOND = 64 * 1024;

export class Connection {
  /** Requests that are begun, and not fully answered. */
  busy = 0;
  #waiting: (() => void)[] | undefined;
  /** Bytes that the reader had taken at the last look, and when that number last changed. */
  #taken = -1;
  #takenAt = 0;

  /** Begins the request, or queues it; false when too many wait already. */
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

  /** The answer is sent, or never will be. */
  end(): void {
    const next = this.#waiting?.shift();
    if (next) next();
    else this.busy = 0;
  }

  /** Whether bytes wait, and the reader has taken none for too long. */
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
