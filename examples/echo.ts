/**
 * The smallest agent: it replies with its task. Needs ERRAND_URL and an agent's ERRAND_TOKEN.
 * Limit: text only; see shell.ts for work that takes longer.
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

// Work in progress may finish within 10 s; after that it is released.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void agent.stop(10));

process.stdout.write(`${name} is looking for work\n`);
await agent.run();
