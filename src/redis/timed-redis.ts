/**
 * A connection that gives up when Redis does not answer. The limits of ioredis itself (`commandTimeout`,
 * `socketTimeout`) are timers: after a stall of this process they fire before the socket is read, so they take the
 * stall for a silence of Redis. This class counts regular checks instead; a stall of any length adds one.
 */
import { Redis } from "ioredis";

type Command = Parameters<Redis["sendCommand"]>[0];
type Stream = Parameters<Redis["sendCommand"]>[1];

/** After this many checks without an answer, the time limit has passed. */
const CHECKS = 8;

export class TimedRedis extends Redis {
  /** The last command that was sent. Redis answers in order, so it is the last to be answered. */
  #last: Command | undefined;
  /** Commands that found no connection, each with the number of the check before it. */
  #unsent: { readonly command: Command; readonly check: number }[] = [];
  #check = 0;
  #silentChecks = 0;
  #bytesRead = 0;

  /**
   * From now on, a connection is closed when a command waits and no byte arrives for `ms`. A command that finds no
   * connection fails after the same time, unless `maxRetriesPerRequest` lets it wait.
   */
  limitSilence(ms: number): this {
    const timer = setInterval(() => this.#tick(ms), ms / CHECKS).unref();
    this.once("end", () => clearInterval(timer));
    return this;
  }

  override sendCommand(command: Command, stream?: Stream): unknown {
    this.#last = command;
    if (this.status !== "ready" && this.options.maxRetriesPerRequest === 0) {
      this.#unsent.push({ command, check: this.#check });
    }
    return super.sendCommand(command, stream);
  }

  #tick(ms: number): void {
    this.#check += 1;
    this.#failUnsent();
    // Undefined before the first connection.
    const bytesRead = this.stream?.bytesRead ?? 0;
    const isConnected = this.status === "ready" || this.status === "connect";
    const isSilent = isConnected && this.#last?.isSettled === false && bytesRead === this.#bytesRead;
    this.#bytesRead = bytesRead;
    this.#silentChecks = isSilent ? this.#silentChecks + 1 : 0;
    if (this.#silentChecks < CHECKS) return;
    this.#silentChecks = 0;
    this.stream.destroy(new Error(`Socket timeout: Redis did not answer within ${ms} ms`));
  }

  #failUnsent(): void {
    if (this.#unsent.length === 0) return;
    this.#unsent = this.#unsent.filter(({ command, check }) => {
      if (this.#check - check > CHECKS) command.reject(new Error("Command timed out"));
      return !command.isSettled;
    });
  }
}
