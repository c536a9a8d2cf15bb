/**
 * An agent that runs its task as a shell command: it streams the output as chunks of an artifact, the exit code decides
 * the result, a cancel kills the command. Needs ERRAND_URL and an agent's ERRAND_TOKEN. Limit: anyone who may delegate to
 * it can run any command as you; set the agent's `accepts_from`, and run it only where that is acceptable.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { Agent, type Reply, type Work } from "../src/index.ts";

if (process.argv.includes("--help")) {
  process.stdout.write(`usage: shell.ts [AGENT]

Works for the agent (shell): runs each task as a shell command. Reads ERRAND_URL and
ERRAND_TOKEN (the agent's).
`);
  process.exit(0);
}

const name = process.argv[2] ?? "shell";

async function run({ text, signal, progress, artifact }: Work): Promise<Reply> {
  // A process group of its own, so that a kill reaches everything that the command started.
  const child = spawn("sh", ["-c", text], { stdio: ["ignore", "pipe", "pipe"], detached: true });
  const ended = once(child, "close");
  const kill = () => void (child.exitCode === null && child.pid && process.kill(-child.pid, "SIGKILL"));
  signal.addEventListener("abort", kill, { once: true });
  let complaint = "";
  child.stderr.setEncoding("utf8").on("data", (said: string) => {
    complaint = (complaint + said).slice(-1000);
  });
  let lines = 0;
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      lines += 1;
      progress({ message: line.slice(0, 200), done: lines });
      await artifact({ artifactId: "stdout", parts: [{ text: `${line}\n` }] }, { append: true });
    }
    const [code] = await ended;
    if (code === 0) return { state: "completed", text: `${lines} lines` };
    const message = complaint.trim() || `the command ended with ${code}`;
    return { state: "failed", error: { code: "command_failed", message, retryable: code === 75 } };
  } finally {
    signal.removeEventListener("abort", kill);
    kill();
  }
}

const agent = new Agent(
  {
    agent: name,
    concurrency: 2,
    onEvent: (event) => {
      if (event.type === "leased") process.stdout.write(`runs: ${event.work.text}\n`);
      if (event.type === "replied") process.stdout.write(`${event.state}: ${event.work.text}\n`);
      if (event.type === "lost") process.stdout.write(`stopped: ${event.reason}\n`);
    },
  },
  run,
);
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void agent.stop());

process.stdout.write(`${name} is looking for work\n`);
await agent.run();
