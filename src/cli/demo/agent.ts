/** The agent of `errand demo`: it reports progress, asks for approval and replies. */
import type { Handler } from "../../client/work.ts";
import { sleep } from "../../util/timing.ts";

export const TASK = "write the release notes";
const STEPS = ["reading the changes", "writing", "checking the links"];
/** How long the agent waits until a step is shown; nobody may be watching. */
const UNSEEN_MS = 5_000;

/** How much of the progress the tour has shown. The agent waits for it, so that no step is skipped. */
export class Shown {
  #done = 0;
  #wake: () => void = () => undefined;

  set(done: number): void {
    this.#done = done;
    this.#wake();
  }

  async reached(done: number): Promise<void> {
    while (this.#done < done) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

export const demoHandler =
  (shown: Shown): Handler =>
  async (work) => {
    // After the answer the handler runs again from the top.
    if (!work.answer) {
      for (const [at, message] of STEPS.entries()) {
        const done = at + 1;
        work.progress({ done, total: STEPS.length, message });
        await Promise.race([shown.reached(done), sleep(UNSEEN_MS, work.signal)]);
      }
    }
    const { decision } = await work.ask({
      text: "The notes are ready. May I publish them?",
      action: { name: "publish", arguments: { file: "notes.md" } },
    });
    return decision === "approve" ? "published notes.md" : "kept notes.md as a draft";
  };
