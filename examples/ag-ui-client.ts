/**
 * An AG-UI client with the official library: it runs an agent, prints what happens, and answers its questions in a later
 * run. It keeps only the thread and the messages, so the answer could come tomorrow, from another process. Needs
 * ERRAND_URL and a caller's ERRAND_TOKEN; try it with release.ts.
 * Limit: it gives every question the same answer.
 */
import { HttpAgent } from "@ag-ui/client";
import type { Interrupt } from "@ag-ui/core";

if (process.argv.includes("--help")) {
  process.stdout.write(`usage: ag-ui-client.ts [AGENT] [TEXT] [approve|deny]

Runs an agent (release) over AG-UI, and answers its questions. Reads ERRAND_URL and ERRAND_TOKEN (a caller's).
`);
  process.exit(0);
}

const [, , name = "release", text = "v1.4.0", decision = "approve"] = process.argv;
const { ERRAND_URL = "http://127.0.0.1:4180", ERRAND_TOKEN = "" } = process.env;

const say = (line: string) => process.stdout.write(`${line}\n`);
const agent = new HttpAgent({
  url: `${ERRAND_URL}/ag-ui/${name}`,
  headers: { authorization: `Bearer ${ERRAND_TOKEN}` },
});
agent.addMessage({ id: crypto.randomUUID(), role: "user", content: text });

/** The library keeps the questions of a run that failed; those need no answer. */
function toEntry({ id, message }: Interrupt) {
  say(`asks: ${message}; answering ${decision}`);
  return { interruptId: id, status: "resolved" as const, payload: { decision } };
}

let failed = false;
agent.subscribe({
  onActivityDeltaEvent: ({ event }) => {
    for (const one of event.patch) if ("value" in one) say(`${one.path.slice(1)}: ${one.value}`);
  },
  onTextMessageEndEvent: ({ textMessageBuffer }) => void say(`says: ${textMessageBuffer}`),
  onRunErrorEvent: ({ event }) => {
    failed = true;
    say(`${event.code}: ${event.message}`);
  },
});

let resume: ReturnType<typeof toEntry>[] = [];
do {
  // A run whose connection breaks ends here, too: the next one attaches to the same delegation.
  await agent.runAgent({ ...(resume.length > 0 && { resume }) });
  resume = failed ? [] : agent.pendingInterrupts.map(toEntry);
} while (resume.length > 0);
process.exitCode = failed ? 1 : 0;
