/**
 * The smallest agent: it says back what it is told. Needs ERRAND_URL and an agent's ERRAND_TOKEN.
 * Limit: text alone; see shell.ts for work that takes a while.
 */
import { Agent } from "../src/index.ts";

if (process.argv.includes("--help")) {
  process.stdout.write(`usage: echo.ts [AGENT]

Works for the agent (echo): replies with the text of the task. Reads ERRAND_URL and ERRAND_TOKEN (the agent's).
`);
  process.exit(0);
}

const name = process.argv[2] ?? "echo";
const agent = new Agent({ agent: name }, (work) => work.text);

// Work in hand may end within 10 s, then it goes back to the queue.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void agent.stop(10));

process.stdout.write(`${name} is looking for work\n`);
await agent.run();
