/** Claude Code A of the scene, as a person starts it, with the broker as an MCP server: one conversation in several runs. */
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import type { Subject } from "./bench.ts";

const execute = promisify(execFile);
const WAIT = "wait_for_results";
const TOOLS = ["delegate_task_async", WAIT].map((name) => `mcp__errand__${name}`);
const WAIT_SECONDS = 50;

const answerSchema = z.object({ result: z.string(), session_id: z.string() });

const cursorIn = (said: string): string | undefined => /"cursor":"([^"]+)"/.exec(said)?.[1];

export class DelegatingClaude {
  readonly #subject: Subject;
  readonly #folder: string;
  readonly #token: string;
  #session: string | undefined;
  /** Of the delegation. */
  #cursor = "";
  #logged = 0;

  constructor(subject: Subject, token: string) {
    this.#subject = subject;
    this.#token = token;
    this.#folder = join(subject.bench.folder, "a");
  }

  /** Returns the id of the delegation. */
  async delegate(agent: string, task: string): Promise<string> {
    const said = await this.#run(
      `Let ${agent} do this.`,
      `delegate_task_async ${JSON.stringify({ agent, task })}`,
    );
    const id = /dlg_\w+/.exec(said)?.[0];
    const cursor = cursorIn(said);
    if (id === undefined || cursor === undefined) throw new Error(`A has delegated nothing: ${said}`);
    this.#cursor = cursor;
    return id;
  }

  /** Reads that there is a question, and waits for what comes after it, as long as a call may wait. */
  async waits(): Promise<string> {
    const asked = await this.#run("What came of it?", `${WAIT} ${JSON.stringify({ cursor: this.#cursor })}`);
    const cursor = cursorIn(asked);
    if (cursor === undefined || !asked.includes("input_required"))
      throw new Error(`A sees no question: ${asked}`);
    this.#logged = this.#subject.bench.model.log.length;
    return this.#run(
      "Wait for the rest.",
      `${WAIT} ${JSON.stringify({ cursor, wait_seconds: WAIT_SECONDS })}`,
    );
  }

  /** Whether the last call of `waits` has begun. */
  isWaiting(): boolean {
    const { log } = this.#subject.bench.model;
    return this.#logged > 0 && log.slice(this.#logged).some((line) => line.includes(WAIT));
  }

  async #run(prompt: string, call: string): Promise<string> {
    const { bench, environment } = this.#subject;
    bench.model.meanings.set(prompt, `call: ${call}`);
    mkdirSync(this.#folder, { recursive: true });
    const config = join(this.#folder, "mcp.json");
    const headers = { Authorization: `Bearer ${this.#token}` };
    const server = { type: "http", url: `${bench.broker.url}/mcp`, headers };
    writeFileSync(config, JSON.stringify({ mcpServers: { errand: server } }));
    const args = [
      ...["-p", prompt, "--output-format", "json", "--mcp-config", config, "--strict-mcp-config"],
      ...["--allowedTools", TOOLS.join(",")],
      ...(this.#session === undefined ? [] : ["--resume", this.#session]),
    ];
    // Without the search for tools, the model is offered those of the server.
    const env = { ...environment, ENABLE_TOOL_SEARCH: "false" };
    const running = execute("claude", args, { cwd: this.#folder, env });
    running.child.stdin?.end();
    const { result, session_id } = answerSchema.parse(JSON.parse((await running).stdout));
    this.#session = session_id;
    return result;
  }
}
