/**
 * One connection as the listener keeps it: requests in turn, and how far its reader has come. Limit: a request that is
 * pipelined waits until the one before it is answered; nothing is granted that could not be delivered.
 */
import type { Socket } from "node:net";
import { LIMITS } from "../schema/limits.ts";

const STALLED_MS = LIMITS.stalled_seconds.value * 1000;
/** For each of these that wait to be read, a reader has a second more. */
const BYTES_A_SECOND = 64 * 1024;

export class Line {
  /** Requests that were begun and are not answered whole. */
  busy = 0;
  #waiting: (() => void)[] | undefined;
  /** Bytes that its reader had taken when that was last looked at, and when they grew. */
  #taken = -1;
  #takenAt = 0;

  /** Begins it, or lets it wait for its turn; false when too many wait already. */
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

  /** The answer is out, or will never be. */
  end(): void {
    const next = this.#waiting?.shift();
    if (next) next();
    else this.busy = 0;
  }

  /** Whether something waits to be read, and its reader has not moved for too long. */
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
