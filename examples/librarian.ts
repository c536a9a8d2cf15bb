/**
 * An agent that polls: its task names a folder of this repository, and its reply describes the source files in it.
 * Needs ERRAND_URL and an agent's ERRAND_TOKEN. Limit: one folder at a time, files read whole.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Agent } from "../src/index.ts";
import { report, SurveyError, survey } from "./survey.ts";

if (process.argv.includes("--help")) {
  process.stdout.write(`usage: librarian.ts [--agent librarian] [--pause MILLISECONDS]

Works for the agent: counts the source files of the folder that the task names. Reads ERRAND_URL and
ERRAND_TOKEN (the agent's).
`);
  process.exit(0);
}

const ROOT = fileURLToPath(new URL("..", import.meta.url));

const { values } = parseArgs({
  options: {
    agent: { type: "string", default: "librarian" },
    /** Milliseconds of rest before each file, for someone who wants to watch. */
    pause: { type: "string", default: "0" },
  },
});
const pauseMs = Number(values.pause);
const { ERRAND_URL: url = "http://127.0.0.1:4180", ERRAND_TOKEN: token } = process.env;

const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const agent = new Agent(
  {
    url,
    token,
    agent: values.agent,
    onEvent: (event) => {
      if (event.type === "leased") say(`at work on ${JSON.stringify(event.work.delegation.task_preview)}`);
      if (event.type === "retrying") say(`the broker is away: ${event.error.message}`);
    },
  },
  async (work) => {
    const { signal } = work;
    try {
      const found = await survey(ROOT, work.text.trim(), {
        signal,
        onFile: async (file, done, total) => {
          work.progress({ done, total, current_step: file.slice(-256), message: `reading ${file}` });
          if (pauseMs > 0) await sleep(pauseMs, undefined, { signal });
        },
      });
      return report(found);
    } catch (error) {
      if (!(error instanceof SurveyError)) throw error;
      return { state: "failed", error: { code: error.code, message: error.message } };
    }
  },
);

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => void agent.stop());

say(`${values.agent} is looking for work at ${url}`);
try {
  await agent.run();
} catch (error) {
  process.stderr.write(`librarian: ${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
}
