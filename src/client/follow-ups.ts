/**
 * What is said to the agent while it works, for whoever in the handler listens: everyone gets all of it, from the first
 * follow-up of the delegation. Limit: what nobody took is not said to be seen, and comes again with the next lease.
 */
import { isFollowUp, type Message } from "../schema/a2a.ts";

export type Listener = (message: Message) => unknown;

export class FollowUps {
  readonly #all: Message[] = [];
  readonly #ids = new Set<string>();
  readonly #listeners = new Set<Listener>();
  /** Those who wait for the next one, or for the end. */
  #waiting: (() => void)[] = [];
  #delivered = 0;
  #ended = false;
  /** Something new was delivered. */
  readonly #onSeen: () => void;
  /** A listener threw. */
  readonly #onError: (error: unknown) => void;

  constructor(history: readonly Message[], onSeen: () => void, onError: (error: unknown) => void) {
    this.#onSeen = onSeen;
    this.#onError = onError;
    this.arrived(history.filter(isFollowUp));
  }

  /** The messageId of the newest that was delivered; it covers all before it. */
  get seen(): string | undefined {
    return this.#all[this.#delivered - 1]?.messageId;
  }

  /** The broker repeats what is not seen yet. */
  arrived(messages: readonly Message[]): void {
    for (const message of messages) {
      if (this.#ended || this.#ids.has(message.messageId)) continue;
      this.#ids.add(message.messageId);
      this.#all.push(message);
      for (const listener of this.#listeners) this.#tell(listener, this.#all.length - 1);
    }
    this.#wake();
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    for (const place of this.#all.keys()) this.#tell(listener, place);
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

  /** Nothing more is delivered. */
  end(): void {
    this.#ended = true;
    this.#listeners.clear();
    this.#wake();
  }

  #tell(listener: Listener, place: number): void {
    const message = this.#all[place];
    if (!message || !this.#listeners.has(listener)) return;
    this.#deliveredUpTo(place);
    void (async () => listener(message))().catch(this.#onError);
  }

  #deliveredUpTo(place: number): void {
    if (place < this.#delivered) return;
    this.#delivered = place + 1;
    this.#onSeen();
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
