/**
 * Pub/sub between gateways: fast hints that may be lost, so each user of the bus needs a second way to notice. `onGap`
 * runs when messages may have been missed.
 */
import type { Redis } from "./connect.ts";

export class Bus {
  readonly #subscriber: Redis;
  readonly #commands: Redis;
  readonly #handlers = new Map<string, (message: string) => void>();
  readonly #onGap: (() => void)[] = [];
  #connectedOnce = false;

  constructor(subscriber: Redis, commands: Redis) {
    this.#subscriber = subscriber;
    this.#commands = commands;
    subscriber.on("message", (channel: string, message: string) => this.#handlers.get(channel)?.(message));
    subscriber.on("ready", () => {
      if (this.#connectedOnce) this.#resume().catch(() => {});
      this.#connectedOnce = true;
    });
  }

  /** Subscribes again, then reports the gap. Runs after every reconnect. */
  async #resume(): Promise<void> {
    await this.#subscriber.subscribe(...this.#handlers.keys());
    for (const handler of this.#onGap) handler();
  }

  async subscribe(channel: string, handler: (message: string) => void): Promise<void> {
    this.#handlers.set(channel, handler);
    await this.#subscriber.subscribe(channel);
  }

  onGap(handler: () => void): void {
    this.#onGap.push(handler);
  }

  publish(channel: string, message: string): Promise<number> {
    return this.#commands.publish(channel, message);
  }
}
