/**
 * Gives up on a Redis that does not answer. The limits of ioredis itself (`commandTimeout`, `socketTimeout`) are timers:
 * after a stall of this process they fire before the socket is read, so they take the stall for a silence of Redis. This
 * one counts regular checks instead; a stall of any length adds one.
 */
import type { Redis } from "ioredis";

export type Command = Parameters<Redis["sendCommand"]>[0];

/**
 * The number of checks within the limit. The first may come right after the command, so only one more check completes
 * the limit.
 */
const CHECKS = 8;

/** Calls `check` every `ms` until the connection ends, and again if somebody (BullMQ) opens it again. */
export function whileOpen(
  redis: { on(event: "end" | "connecting", listener: () => void): unknown },
  ms: number,
  check: () => void,
): void {
  let timer: NodeJS.Timeout | undefined;
  const start = () => {
    timer ??= setInterval(check, ms).unref();
  };
  redis.on("connecting", start);
  redis.on("end", () => {
    clearInterval(timer);
    timer = undefined;
  });
  start();
}

/** Calls `check` eight times within `ms`. */
export const checkRegularly = (redis: Parameters<typeof whileOpen>[0], ms: number, check: () => void): void =>
  whileOpen(redis, ms / CHECKS, check);

/** Commands that found no connection. They fail after the limit. */
export class UnsentCommands {
  /** Each with the number of the check before it. */
  #waiting: { readonly command: Command; readonly check: number }[] = [];
  #check = 0;

  add(command: Command): void {
    this.#waiting.push({ command, check: this.#check });
  }

  /** Call it at every check. */
  tick(): void {
    this.#check += 1;
    if (this.#waiting.length === 0) return;
    this.#waiting = this.#waiting.filter(({ command, check }) => {
      if (this.#check - check > CHECKS) command.reject(new Error("Command timed out"));
      return !command.isSettled;
    });
  }
}

/**
 * From now on, the connection is closed when a command or the handshake waits and no byte arrives for `ms`. A command
 * that finds no connection fails after the same time, unless `maxRetriesPerRequest` lets it wait.
 */
export function limitSilence(redis: Redis, ms: number): void {
  const unsent = new UnsentCommands();
  let silentChecks = 0;
  let bytesRead = 0;
  const send = redis.sendCommand.bind(redis);
  redis.sendCommand = (command, stream) => {
    const promise = send(command, stream);
    const isSent = redis.commandQueue.peekBack()?.command === command;
    if (!isSent && redis.options.maxRetriesPerRequest === 0) unsent.add(command);
    return promise;
  };
  /** Whether an answer is awaited and no byte has arrived since the last check. */
  const isSilent = (): boolean => {
    // Undefined before the first connection.
    const now = redis.stream?.bytesRead ?? 0;
    const isUnchanged = now === bytesRead;
    bytesRead = now;
    const isConnected = redis.status === "ready" || redis.status === "connect";
    // The queue has every command that was sent but not answered, also those of the handshake and failed ones.
    return isConnected && redis.commandQueue.length > 0 && isUnchanged;
  };
  checkRegularly(redis, ms, () => {
    silentChecks = isSilent() ? silentChecks + 1 : 0;
    if (silentChecks > CHECKS) {
      silentChecks = 0;
      redis.stream.destroy(new Error(`Socket timeout: Redis did not answer within ${ms} ms`));
    }
    unsent.tick();
  });
}
