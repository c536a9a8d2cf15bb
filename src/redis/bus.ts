/**
 * Pub/sub between gateways: fast hints that may be lost, so each user of the bus needs a second way to notice. `onGap`
 * runs when messages may have been missed. Redis shares its channels between all databases, so a channel's name ends in
 * the database's number, unless that is 0.
 */
import { databaseOf, type Redis, type ServerConnection } from "./connect.ts";

export class Bus {
  readonly #subscriber: ServerConnection;
  readonly #commands: Redis;
  readonly #handlers = new Map<string, (message: string) => void>();
  readonly #onGap: (() => void)[] = [];
  readonly #suffix: string;
  #connectedOnce = false;

  constructor(subscriber: ServerConnection, commands: Redis) {
    this.#subscriber = subscriber;
    this.#commands = commands;
    const db = databaseOf(commands);
    this.#suffix = db === 0 ? "" : `@${db}`;
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
    const name = this.nameOf(channel);
    this.#handlers.set(name, handler);
    await this.#subscriber.subscribe(name);
  }

  onGap(handler: () => void): void {
    this.#onGap.push(handler);
  }

  publish(channel: string, message: string): Promise<number> {
    return this.#commands.publish(this.nameOf(channel), message);
  }

  /** The channel's name in Redis, for scripts that publish. */
  nameOf(channel: string): string {
    return channel + this.#suffix;
  }
}
