/** A lock for each key within this process. Those who wait get it in the order in which they came. */
import { onAbort } from "../../util/timing.ts";

export class InTurn {
  /** For each thing in use: resolves when its last user so far is done. */
  readonly #lastUse = new Map<string, Promise<void>>();

  /** Rejects, without `use`, if the signal aborts before its turn. */
  async use<T>(thing: string, signal: AbortSignal, use: () => Promise<T>): Promise<T> {
    const before = this.#lastUse.get(thing);
    let leave = () => {};
    const left = new Promise<void>((resolve) => {
      leave = resolve;
    });
    const mine = Promise.all([before, left]).then(() => {
      if (this.#lastUse.get(thing) === mine) this.#lastUse.delete(thing);
    });
    this.#lastUse.set(thing, mine);
    try {
      if (before) await beforeAbort(before, signal);
      return await use();
    } finally {
      leave();
    }
  }
}

/** Waits for `done`, but rejects as soon as the signal aborts. */
async function beforeAbort(done: Promise<void>, signal: AbortSignal): Promise<void> {
  let off = () => {};
  try {
    await new Promise<void>((resolve, reject) => {
      off = onAbort(signal, () => reject(signal.reason));
      signal.throwIfAborted();
      void done.then(resolve);
    });
  } finally {
    off();
  }
}
