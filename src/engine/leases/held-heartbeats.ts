/** The heartbeat that waits for each lease at this gateway: a newer one ends the earlier one. */
export class HeldHeartbeats {
  readonly #stops = new Map<string, () => void>();

  get size(): number {
    return this.#stops.size;
  }

  /** Ends the one that waits for this lease. Call the result when this one waits no longer. */
  begin(leaseId: string, stop: () => void): () => void {
    this.#stops.get(leaseId)?.();
    this.#stops.set(leaseId, stop);
    return () => {
      if (this.#stops.get(leaseId) === stop) this.#stops.delete(leaseId);
    };
  }
}
