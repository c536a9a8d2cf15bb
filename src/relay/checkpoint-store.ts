/** Keeps the relay's checkpoint in memory and saves it to the broker. Each save sends the newest one. */
import { countAnswers, type RelayCheckpoint, readCheckpoint } from "./checkpoint.ts";
import type { RelayPort } from "./port.ts";

export class CheckpointStore {
  /** How many questions of the delegation are answered. */
  readonly answerCount: number;
  readonly #port: RelayPort;
  #checkpoint: RelayCheckpoint;
  #saved: Promise<void> = Promise.resolve();

  constructor(port: RelayPort) {
    this.#port = port;
    this.answerCount = countAnswers(port.lease.delegation.history);
    this.#checkpoint = readCheckpoint(port.lease.checkpoint) ?? { turn: this.answerCount, said: 0 };
  }

  get checkpoint(): RelayCheckpoint {
    return this.#checkpoint;
  }

  /** Changes the checkpoint in memory at once, so that a run that is stopped meanwhile cancels the right task. */
  save(checkpoint: RelayCheckpoint): Promise<void> {
    this.#checkpoint = checkpoint;
    const saved = this.#saved.then(() => this.#port.saveCheckpoint({ ...this.#checkpoint }));
    this.#saved = saved.catch(() => undefined);
    return saved;
  }

  change(members: Partial<RelayCheckpoint>): Promise<void> {
    return this.save({ ...this.#checkpoint, ...members });
  }
}
