/**
 * One scene with two Claude Codes: A delegates by MCP to B, which works with `--preset claude`. B wants to run a command. Its
 * worker is killed while the question is open, a person approves with other arguments, and another worker goes on.
 */
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { until } from "../support/until.ts";
import type { Subject } from "./bench.ts";

const execute = promisify(execFile);
const TOOLS = ["delegate_task_async", "check_task_status"].map((name) => `mcp__errand__${name}`);

const answerSchema = z.object({ result: z.string(), session_id: z.string() });

/** Claude Code A, as a person starts it, with the broker as an MCP server. */
async function runA(subject: Subject, prompt: string, session?: string) {
  const { url, token } = subject.bench.broker;
  const folder = join(subject.bench.folder, "a");
  mkdirSync(folder, { recursive: true });
  const config = join(folder, "mcp.json");
  const server = { type: "http", url: `${url}/mcp`, headers: { Authorization: `Bearer ${token}` } };
  writeFileSync(config, JSON.stringify({ mcpServers: { errand: server } }));
  const args = [
    ...["-p", prompt, "--output-format", "json", "--mcp-config", config, "--strict-mcp-config"],
    ...["--allowedTools", TOOLS.join(",")],
    ...(session === undefined ? [] : ["--resume", session]),
  ];
  // Without the search for tools, the model is offered those of the server.
  const env = { ...subject.environment, ENABLE_TOOL_SEARCH: "false" };
  const running = execute("claude", args, { cwd: folder, env });
  running.child.stdin?.end();
  return answerSchema.parse(JSON.parse((await running).stdout));
}

/** `ask`: how B waits for the person. Throws an error that says what is wrong. */
export async function scene(
  subject: Subject,
  ask: "hold" | "park",
  note: (line: string) => void,
): Promise<void> {
  const agent = `b-${ask}`;
  const file = `${ask}.txt`;
  const expect = (holds: boolean, what: string) => {
    if (!holds) throw new Error(what);
    note(what);
  };
  const first = subject.work(agent, ["--ask", ask]);
  await until(async () => (await subject.raw(`/v1/agents/${agent}`)).name === agent, { what: agent });
  const task = `\\u005b\\u005brun: echo original >> ${file}\\u005d\\u005d`;
  const asked = await runA(subject, `[[call: delegate_task_async {"agent":"${agent}","task":"${task}"}]]`);
  const id = /dlg_\w+/.exec(asked.result)?.[0] ?? "";
  expect(id !== "", `A has delegated by MCP: ${id || asked.result}`);
  const { request } = await subject.question(id);
  const { command } = Object(request.action?.arguments);
  expect(command === `echo original >> ${file}`, `B asks for: ${command}`);
  const { delegations } = await subject.raw("/v1/delegations?state=input_required");
  expect(JSON.stringify(delegations).includes(id), "the question is in the inbox");
  first.kill("SIGKILL");
  await until(async () => (await subject.delegator.get(id)).lease === null, { what: "the end of the lease" });
  const data = { command: `echo edited >> ${file}`, description: "Edited by a person" };
  await subject.delegator.approve(id, { data });
  const second = subject.work(agent, ["--ask", ask]);
  const { state, reply } = await subject.ended(id);
  expect(state === "completed", `another worker went on: ${JSON.stringify(reply?.parts)}`);
  expect(subject.read(file) === "edited\n", "the edited command ran once, the original one never");
  const got = await runA(subject, `[[call: check_task_status {"delegation_id":"${id}"}]]`, asked.session_id);
  expect(got.result.includes("The tool says"), `A has the result: ${got.result.slice(0, 200)}`);
  await subject.stop(second);
}
