/** What the agents of the demo do: one writes, has its links checked by the other, asks, and replies. */
import type { Handler, Work } from "../../client/work.ts";
import { isTerminal } from "../../schema/delegation.ts";

export const TASK = "Write the release notes of 2.0 and publish them";
const STEP_MS = 1_500;
/** How often it looks whether the other agent is done. */
const LOOK_MS = 700;

const NOTES = `# Release 2.0

- **Search** finds words in the middle of a name.
- The export has one file per project.
- Sign-in no longer fails after a change of the clock.
`;

/** Rejects when the work must stop. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

async function steps(work: Work, names: readonly string[]): Promise<void> {
  for (const [done, current_step] of names.entries()) {
    work.progress({ done, total: names.length, current_step });
    await pause(STEP_MS, work.signal);
  }
}

export const checker: Handler = async (work) => {
  await steps(work, ["opening the links", "reading the pages"]);
  return "All 3 links work.";
};

export const writer =
  (checkerName: string): Handler =>
  async (work) => {
    // After the answer it runs again from the top.
    if (!work.answer) {
      await steps(work, ["reading the changes", "writing"]);
      await work.artifact({
        artifactId: "notes",
        name: "notes.md",
        parts: [{ text: NOTES, mediaType: "text/markdown" }],
      });
      work.progress({ done: 2, total: 3, current_step: "having the links checked" });
      const { id } = await work.delegate({ target: checkerName, task: "Check the links in notes.md" });
      while (!isTerminal((await work.delegator.get(id, { signal: work.signal })).state))
        await pause(LOOK_MS, work.signal);
    }
    const { decision, data } = await work.ask({
      requestId: "publish",
      text: "The notes are ready, and their links work. May I publish them?",
      action: { name: "publish", arguments: { file: "notes.md", channel: "#releases", announce: true } },
      edit: true,
    });
    if (decision !== "approve") return "I kept **notes.md** as a draft.";
    const isChanged = data !== undefined;
    return `I published **notes.md**${isChanged ? ", with your changes" : ""}.`;
  };
