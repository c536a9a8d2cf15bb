/**
 * A connection that gives up when Redis does not answer. The limits of ioredis itself (`commandTimeout`,
 * `socketTimeout`) are timers: after a stall of this process they fire before the socket is read, so they take the
 * stall for a silence of Redis. This class counts regular checks instead; a stall of any length adds one.
 */
import { Redis } from "ioredis";

type Command = Parameters<Redis["sendCommand"]>[0];
type Stream = Parameters<Redis["sendCommand"]>[1];

/** Checks within the limit. The first one may come right after the command, so the limit passes with one more. */
const CHECKS = 8;

export class TimedRedis extends Redis {
  /** Commands that found no connection, each with the number of the check before it. */
  #unsent: { readonly command: Command; readonly check: number }[] = [];
  #check = 0;
  #silentChecks = 0;
  #bytesRead = 0;

  /**
   * From now on, a connection is closed when a command or the handshake waits and no byte arrives for `ms`. A command
   * that finds no connection fails after the same time, unless `maxRetriesPerRequest` lets it wait.
   */
  limitSilence(ms: number): this {
    const timer = setInterval(() => this.#tick(ms), ms / CHECKS).unref();
    this.once("end", () => clearInterval(timer));
    return this;
  }

  override sendCommand(command: Command, stream?: Stream): unknown {
    const promise = super.sendCommand(command, stream);
    const isSent = this.commandQueue.peekBack()?.command === command;
    if (!isSent && this.options.maxRetriesPerRequest === 0) {
      this.#unsent.push({ command, check: this.#check });
    }
    return promise;
  }

  #tick(ms: number): void {
    this.#check += 1;
    this.#silentChecks = this.#isSilent() ? this.#silentChecks + 1 : 0;
    if (this.#silentChecks > CHECKS) {
      this.#silentChecks = 0;
      this.stream.destroy(new Error(`Socket timeout: Redis did not answer within ${ms} ms`));
    }
    this.#failUnsent();
  }

  /** Whether an answer is awaited and no byte has arrived since the last check. */
  #isSilent(): boolean {
    // Undefined before the first connection.
    const bytesRead = this.stream?.bytesRead ?? 0;
    const isUnchanged = bytesRead === this.#bytesRead;
    this.#bytesRead = bytesRead;
    const isConnected = this.status === "ready" || this.status === "connect";
    // The queue has every command that was sent but not answered, also those of the handshake and failed ones.
    return isConnected && this.commandQueue.length > 0 && isUnchanged;
  }

  #failUnsent(): void {
    if (this.#unsent.length === 0) return;
    this.#unsent = this.#unsent.filter(({ command, check }) => {
      if (this.#check - check > CHECKS) command.reject(new Error("Command timed out"));
      return !command.isSettled;
    });
  }
}
