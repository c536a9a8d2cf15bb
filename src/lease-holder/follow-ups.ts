/**
 * The follow-ups of one lease: every listener and reader gets all of them, from the delegation's first. A follow-up that
 * was delivered to none of them is not acknowledged, and is sent again with the next lease.
 */
import { isFollowUp, type Message } from "../schema/a2a.ts";

export type Listener = (message: Message) => unknown;

export class FollowUps {
  readonly #all: Message[] = [];
  readonly #ids = new Set<string>();
  readonly #listeners = new Set<Listener>();
  /** Readers that wait for the next one, or for the end. */
  #waiting: (() => void)[] = [];
  #delivered = 0;
  #ended = false;
  /** Called when a new follow-up was delivered. */
  readonly #onDelivered: () => void;
  /** Called with the error that a listener threw. */
  readonly #onError: (error: unknown) => void;

  constructor(history: readonly Message[], onDelivered: () => void, onError: (error: unknown) => void) {
    this.#onDelivered = onDelivered;
    this.#onError = onError;
    this.add(history.filter(isFollowUp));
  }

  /** The messageId of the newest delivered follow-up; it acknowledges all before it. */
  get seen(): string | undefined {
    return this.#all[this.#delivered - 1]?.messageId;
  }

  /** Skips repeats: the broker sends each until it is acknowledged. */
  add(messages: readonly Message[]): void {
    for (const message of messages) {
      if (this.#ended || this.#ids.has(message.messageId)) continue;
      this.#ids.add(message.messageId);
      this.#all.push(message);
      for (const listener of this.#listeners) this.#call(listener, this.#all.length - 1);
    }
    this.#wake();
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    for (const place of this.#all.keys()) this.#call(listener, place);
    return () => void this.#listeners.delete(listener);
  }

  async *read(): AsyncGenerator<Message, void> {
    for (let place = 0; ; place += 1) {
      while (this.#all.length <= place) {
        if (this.#ended) return;
        await new Promise<void>((resolve) => this.#waiting.push(resolve));
      }
      const message = this.#all[place];
      if (!message || this.#ended) return;
      this.#deliveredUpTo(place);
      yield message;
    }
  }

  /** Stops all deliveries. */
  end(): void {
    this.#ended = true;
    this.#listeners.clear();
    this.#wake();
  }

  #call(listener: Listener, place: number): void {
    const message = this.#all[place];
    if (!message || !this.#listeners.has(listener)) return;
    this.#deliveredUpTo(place);
    void (async () => listener(message))().catch(this.#onError);
  }

  #deliveredUpTo(place: number): void {
    if (place < this.#delivered) return;
    this.#delivered = place + 1;
    this.#onDelivered();
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
