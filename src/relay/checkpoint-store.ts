/** The relay's mark in memory and with the broker. Limit: the newest wins; what it replaces need not have been kept. */
import { type RelayCheckpoint, readCheckpoint } from "./checkpoint.ts";
import type { RelayPort } from "./port.ts";

export class CheckpointStore {
  readonly #port: RelayPort;
  #mark: RelayCheckpoint;
  #saved: Promise<void> = Promise.resolve();

  /** `turns`: how many questions are answered, for a delegation that has no mark yet. */
  constructor(port: RelayPort, turns: number) {
    this.#port = port;
    this.#mark = readCheckpoint(port.lease.checkpoint) ?? { turn: turns, said: 0 };
  }

  get mark(): RelayCheckpoint {
    return this.#mark;
  }

  /** In memory first: what is canceled meanwhile is canceled there too. */
  save(mark: RelayCheckpoint): Promise<void> {
    this.#mark = mark;
    const saved = this.#saved.then(() => this.#port.saveCheckpoint({ ...this.#mark }));
    this.#saved = saved.catch(() => undefined);
    return saved;
  }

  change(members: Partial<RelayCheckpoint>): Promise<void> {
    return this.save({ ...this.#mark, ...members });
  }
}
