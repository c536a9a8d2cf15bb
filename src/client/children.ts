/**
 * Delegates from within a handler. A child belongs to the handler's delegation, context and trace, and is created once,
 * even if the handler runs again. Limit: if its input differs in a later run, that run creates another child.
 */
import type { Lease } from "../schema/lease.ts";
import type { Delegated, Delegator } from "./delegator.ts";
import { type DelegateOptions, type TaskInput, withOptions } from "./delegator-options.ts";
import { Ordinals } from "./hash.ts";

export class Children {
  readonly #delegator: Delegator;
  readonly #lease: Lease;
  readonly #signal: AbortSignal;
  readonly #ordinals = new Ordinals();

  constructor(delegator: Delegator, lease: Lease, signal: AbortSignal) {
    this.#delegator = delegator;
    this.#lease = lease;
    this.#signal = signal;
  }

  async delegate(input: TaskInput, options: DelegateOptions = {}): Promise<Delegated> {
    const { delegation, traceparent } = this.#lease;
    const { signal = this.#signal } = options;
    const name = this.#ordinals.name(JSON.stringify(withOptions(input, options)));
    this.#signal.throwIfAborted();
    return this.#delegator.delegate(
      { context_id: delegation.context_id, ...input },
      {
        traceparent,
        idempotencyKey: `${delegation.id}/${name}`,
        ...options,
        signal,
        parentId: delegation.id,
      },
    );
  }
}
