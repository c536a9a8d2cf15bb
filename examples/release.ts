/**
 * An agent that asks before it acts: its task names a version, which it releases after an approval. The question ends
 * the run, and the answer starts it again, perhaps in another process. Needs ERRAND_URL and an agent's ERRAND_TOKEN.
 * Limit: it releases nothing; answer with approver.ts or `errand approve`.
 */
import { Agent, textOf } from "../src/index.ts";

if (process.argv.includes("--help")) {
  process.stdout.write(`usage: release.ts [AGENT]

Works for the agent (release): asks for approval, and pretends to release. Reads ERRAND_URL and ERRAND_TOKEN (the
agent's).
`);
  process.exit(0);
}

const say = (line: string) => process.stdout.write(`${line}\n`);

const name = process.argv[2] ?? "release";
const agent = new Agent(
  {
    agent: name,
    onEvent: (event) => {
      if (event.type === "parked") say(`asked about ${event.work.text}`);
      if (event.type === "replied") say(`${event.reply.state}: ${event.work.text}`);
    },
  },
  async (work) => {
    const version = work.text.trim();
    const notes: string[] = [];
    work.onMessage((message) => notes.push(textOf(message)));

    // The code above runs again for each answer; put actions that must happen once after the last question.
    const answer = await work.ask(`Release ${version}?`, { options: ["approve", "deny"] });
    if (answer.decision !== "approve") {
      return { state: "rejected", text: `not released: ${answer.text || "no reason given"}` };
    }

    work.progress("releasing");
    return [`released ${version}`, ...notes].join("; ");
  },
);

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void agent.stop(10));

say(`${name} is looking for work`);
await agent.run();
