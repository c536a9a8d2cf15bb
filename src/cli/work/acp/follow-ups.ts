/** The follow-up messages of a delegation, as prompts. A run that starts over gets all of them again. */
import type { Work } from "../../../client/work.ts";
import { textOf } from "../../../schema/a2a.ts";

export class FollowUps {
  readonly #texts: string[] = [];
  readonly close: () => void;
  #taken = 0;

  /** `onNew` is called for each, also for those that have come before. */
  constructor(task: Pick<Work, "onMessage">, onNew: () => void = () => undefined) {
    this.close = task.onMessage((message) => {
      this.#texts.push(textOf(message));
      onNew();
    });
  }

  /** How many the agent has got. */
  get taken(): number {
    return this.#taken;
  }

  /** The agent got so many of them in an earlier run. */
  skip(count: number): void {
    this.#taken = Math.min(count, this.#texts.length);
  }

  take(): string[] {
    const next = this.#texts.slice(this.#taken);
    this.#taken = this.#texts.length;
    return next.filter((text) => text.trim() !== "");
  }
}
