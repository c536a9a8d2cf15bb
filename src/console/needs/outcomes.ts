/** What became of each question for this reader: an answer on its way, the outcome, or why an answer was not sent. */
import { signal } from "@preact/signals";
import type { Answer, Answers } from "../../client/answer.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import { now } from "../data/clock.ts";
import type { Connection } from "../data/connection.ts";
import type { ListedDelegation } from "../data/listed.ts";

const NOTE_MS = 8_000;

export interface Pending {
  readonly listed: ListedDelegation;
  readonly interrupt: Interrupt;
  /** "Approved", for the reader. */
  readonly done: string;
  readonly answer: Answer | Answers;
  /** Done once the broker has the answer, such as a rule for the next ones. */
  readonly then?: ((connection: Connection) => Promise<void>) | undefined;
  /** Of the session in which it was given. */
  readonly connection: Connection;
  /** Sent again, it is the same answer. */
  readonly key: string;
  /** The time at which it is sent, by the clock of `performance`. Null: it is being sent, and cannot be taken back. */
  readonly sentAt: number | null;
}

/** The outcome of a question that is no longer open. */
export interface Note {
  readonly listed: ListedDelegation;
  readonly text: string;
  readonly at?: string;
}

/** A map; components that read it are drawn again when it changes. */
class SignalMap<T> {
  readonly #map = signal<ReadonlyMap<string, T>>(new Map());

  get(id: string): T | undefined {
    return this.#map.value.get(id);
  }

  keys(): string[] {
    return [...this.#map.value.keys()];
  }

  entries(): [string, T][] {
    return [...this.#map.value];
  }

  set(id: string, value: T): void {
    this.#map.value = new Map(this.#map.peek()).set(id, value);
  }

  clear(): void {
    this.#map.value = new Map();
  }

  delete(id: string): void {
    const left = new Map(this.#map.peek());
    if (left.delete(id)) this.#map.value = left;
  }
}

/** By the question's id. */
export const pending = new SignalMap<Pending>();
export const notes = new SignalMap<Note>();
export const failures = new SignalMap<unknown>();
/** Answers that an absent broker did not take, or took without saying so. */
export const unsent = new SignalMap<Pending>();
export function note(id: string, text: Note): void {
  notes.set(id, text);
  // A later note has its own time.
  setTimeout(() => notes.get(id) === text && notes.delete(id), NOTE_MS);
}

/** The note on a question that nobody is known to have answered. */
export function closed(listed: ListedDelegation): Note {
  const ends = listed.interrupt?.expires_at ?? "";
  const hasExpired = Date.parse(ends) <= now.peek();
  return hasExpired
    ? { listed, text: "Nobody answered in time", at: ends }
    : { listed, text: "This question is no longer open" };
}
