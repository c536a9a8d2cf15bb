/**
 * Tasks whose delegations nobody holds: they ask, or wait for another try. When such a delegation ends without them, they
 * are canceled. Limit: in memory; what a process that dies had parked goes on until its server ends it.
 */
import type { Remote } from "./remote.ts";

/** More than this are forgotten, the oldest first. */
const MAX_PARKED = 10_000;

export class Parked {
  readonly #tasks = new Map<string, { readonly remote: Remote; readonly task: string }>();

  has(delegationId: string): boolean {
    return this.#tasks.has(delegationId);
  }

  add(delegationId: string, remote: Remote, task: string): void {
    this.#tasks.set(delegationId, { remote, task });
    const oldest = this.#tasks.keys().next();
    if (this.#tasks.size > MAX_PARKED && !oldest.done) this.#tasks.delete(oldest.value);
  }

  /** Somebody goes on with it. */
  delete(delegationId: string): void {
    this.#tasks.delete(delegationId);
  }

  /** Nobody wants it any more. Never throws; `note` hears of a cancel that failed. */
  async ended(delegationId: string, note: (what: string) => void): Promise<void> {
    const parked = this.#tasks.get(delegationId);
    this.#tasks.delete(delegationId);
    await parked?.remote.cancel(parked.task, note);
  }
}
