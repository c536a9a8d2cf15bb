/** The relay's mark in memory and with the broker. Limit: the newest wins; what it replaces need not have been kept. */
import { type Mark, readMark } from "./checkpoint.ts";
import type { RelayPort } from "./port.ts";

export class Notebook {
  readonly #port: RelayPort;
  #mark: Mark;
  #saved: Promise<void> = Promise.resolve();

  /** `turns`: how many questions are answered, for a delegation that has no mark yet. */
  constructor(port: RelayPort, turns: number) {
    this.#port = port;
    this.#mark = readMark(port.lease.checkpoint) ?? { turn: turns, said: 0 };
  }

  get mark(): Mark {
    return this.#mark;
  }

  /** In memory first: what is canceled meanwhile is canceled there too. */
  save(mark: Mark): Promise<void> {
    this.#mark = mark;
    const saved = this.#saved.then(() => this.#port.saveCheckpoint({ ...this.#mark }));
    this.#saved = saved.catch(() => undefined);
    return saved;
  }

  change(members: Partial<Mark>): Promise<void> {
    return this.save({ ...this.#mark, ...members });
  }
}
