/**
 * Two agents that use only MCP tools: one delegates, the other polls, asks for a language, and answers in it.
 * Needs ERRAND_URL, ERRAND_TOKEN (the delegator's) and AGENT_TOKEN (the agent's; may be omitted if ERRAND_TOKEN is the
 * operator's). Usage: mcp-pair.ts AGENT. Limit: each takes one turn; a model would decide what to call next.
 */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const { ERRAND_URL = "http://127.0.0.1:4180", ERRAND_TOKEN = "", AGENT_TOKEN = ERRAND_TOKEN } = process.env;
const [agent] = process.argv.slice(2);
const HELP = `usage: mcp-pair.ts AGENT

Delegates to the agent, and works as the agent, with MCP tools only. Reads ERRAND_URL, ERRAND_TOKEN (the delegator's)
and AGENT_TOKEN (the agent's; default: ERRAND_TOKEN).
`;
if (process.argv.includes("--help")) {
  process.stdout.write(HELP);
  process.exit(0);
}
if (agent === undefined) {
  process.stderr.write(HELP);
  process.exit(64);
}

/** A client, and a function that calls its tools: it returns the answer's data, and throws an error's recovery. */
async function connect(name: string, token: string) {
  const client = new Client({ name, version: "1" }, { versionNegotiation: { mode: "auto" } });
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL("/mcp", ERRAND_URL), { requestInit }));
  const call = async (tool: string, args: Record<string, unknown>) => {
    const { structuredContent } = await client.callTool({ name: tool, arguments: args });
    const data: ReturnType<typeof JSON.parse> = structuredContent;
    process.stdout.write(`${name}: ${tool}\n`);
    if (data.error) throw new Error(`${data.error.message} ${data.error.recovery}`);
    return data;
  };
  return { call, close: () => client.close() };
}

async function work(): Promise<void> {
  const { call, close } = await connect("worker", AGENT_TOKEN);
  const [first] = (await call("poll_inbox", { agent, wait_seconds: 50 })).tasks;
  await call("request_input", {
    lease_id: first.lease_id,
    question: "In which language?",
    request_id: "language",
  });
  // The question ended the lease; after the answer, the next poll gets the work.
  const [second] = (await call("poll_inbox", { agent, wait_seconds: 50 })).tasks;
  const { lease_id } = second;
  const { answers } = await call("request_input", {
    lease_id,
    question: "In which language?",
    request_id: "language",
  });
  const isFrench = answers.language.message.parts[0].text === "French";
  await call("report_progress", { lease_id, message: "thinking of a greeting" });
  await call("complete_task", { lease_id, text: isFrench ? "Bonjour" : "Hello" });
  await close();
}

const { call, close } = await connect("caller", ERRAND_TOKEN);
const working = work();
const asking = await call("delegate_task", { agent, task: "Greet me.", wait_seconds: 50 });
process.stdout.write(`it asks: ${asking.question.requests[0].text}\n`);
const { delegation_id, question } = asking;
await call("answer_task", { delegation_id, interrupt_id: question.interrupt_id, text: "French" });
const done = await call("check_task_status", { delegation_id, wait_seconds: 50 });
await working;
await close();
process.stdout.write(`${done.state}: ${done.reply.text}\n`);
