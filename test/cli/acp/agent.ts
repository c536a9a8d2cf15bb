/** A worker with the scripted agent of test/support/acp-agent.mjs, at a real broker. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { z } from "zod";
import type { AcpOptions } from "../../../src/cli/work/acp/setup.ts";
import { AcpWorker } from "../../../src/cli/work/acp/worker.ts";
import { ChildProcesses } from "../../../src/cli/work/child.ts";
import { here, type Workspace } from "../../../src/cli/work/workspace.ts";
import { Agent } from "../../../src/client/agent.ts";
import type { Question } from "../../../src/client/questions.ts";
import { client, OPERATOR, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

const PROGRAM = fileURLToPath(new URL("../../support/acp-agent.mjs", import.meta.url));

export type Step = Readonly<Record<string, unknown>>;
export interface Script {
  readonly turns?: readonly (readonly Step[])[];
  readonly [member: string]: unknown;
}

const entrySchema = z.looseObject({ pid: z.number(), method: z.string() });

export const say = (text: string, more: object = {}): Step => ({ say: text, with: more });
export const OPTIONS = [
  { optionId: "yes", name: "Allow", kind: "allow_once" },
  { optionId: "ever", name: "Always allow touch", kind: "allow_always" },
  { optionId: "no", name: "Reject", kind: "reject_once" },
];
export const touch = (id: string, command = "touch a.txt"): Step => ({
  ask: {
    toolCall: { toolCallId: id, title: command, kind: "execute", rawInput: { command } },
    options: OPTIONS,
  },
});
export const MODES = {
  currentModeId: "yolo",
  availableModes: ["yolo", "default", "plan"].map((id) => ({ id, name: id })),
};

/** A folder with the script, and what the agent has written there. */
export function scripted(script: Script) {
  const folder = mkdtempSync(join(tmpdir(), "errand-acp-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const write = (next: Script) =>
    writeFileSync(join(folder, "script.json"), JSON.stringify({ turns: [], ...next }));
  write(script);
  const log = () => {
    const file = join(folder, "log.jsonl");
    const text = existsSync(file) ? readFileSync(file, "utf8") : "";
    return text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => entrySchema.parse(JSON.parse(line)));
  };
  const command: [string, ...string[]] = [process.execPath, PROGRAM, folder];
  return { folder, write, log, command, methods: () => log().map(({ method }) => method) };
}

export type Scripted = ReturnType<typeof scripted>;

export async function broker() {
  const { url, redis } = await startBroker();
  const api = client(url);
  const made = await api.agent("coder", { limits: { max_attempts: 1 } });
  if (made.status >= 300) throw new Error(JSON.stringify(made.body));
  /** The delegation once it has ended, or asks. */
  const ended = async (id: string) => (await api.get(id, "?wait_seconds=30")).body;
  const delegate = async (more: Record<string, unknown> = {}) =>
    idOf((await api.delegate("coder", more)).body);
  return { url, api, redis, ended, delegate };
}

/** Works for `coder` until the test ends, or `stop` is called. */
export function work(
  url: string,
  { command, folder }: Pick<Scripted, "command" | "folder">,
  options: Partial<AcpOptions> & { readonly workspace?: Workspace } = {},
  concurrency = 1,
) {
  const { workspace = here(), ...rest } = options;
  const warnings: string[] = [];
  const children = new ChildProcesses();
  const worker = new AcpWorker({
    command,
    children,
    environment: { inherited: { PATH: process.env.PATH, ERRAND_TOKEN: "secret" }, url },
    version: "1.2.3",
    startTimeoutMs: 30_000,
    choice: { mode: undefined, config: [] },
    limits: {},
    stateHome: join(folder, "state"),
    warn: (text) => warnings.push(text),
    collectMs: 50,
    settleMs: 0,
    cancelGraceMs: 300,
    holdMs: 0,
    stickyMs: 0,
    ...rest,
  });
  const agent = new Agent({ url, token: OPERATOR, agent: "coder", concurrency, failFast: false }, (task) =>
    worker.run(task, workspace),
  );
  const running = agent.run();
  running.catch(() => undefined);
  const stop = async () => {
    await agent.stop();
    await worker.close();
  };
  onTestFinished(stop);
  return { warnings, stop, children };
}

type Approvals = NonNullable<AcpOptions["approvals"]>;

/** As a broker that holds the question and its lease until these decisions come, one for each request. */
export function held(
  given: readonly { decision: "approve" | "deny"; text?: string }[],
  uses: readonly ("first" | "again")[] = [],
) {
  const asked: Question[] = [];
  let answered = 0;
  let used = 0;
  const approvals: Approvals = () => ({
    ask: async (requests) => {
      asked.push(...requests);
      return requests.map(({ requestId = "" }) => {
        const { decision, text = "" } = given[answered++] ?? { decision: "deny" };
        const message = { messageId: "m", role: "ROLE_USER" as const, parts: [{ text }] };
        const common = { data: undefined, by: "operator", at: undefined, redacted: false };
        return { requestId, interruptId: "int_1", decision, text, message, ...common };
      });
    },
    use: async () => uses[used++] ?? "first",
  });
  return { approvals, asked };
}

/** The broker and one worker. */
export async function setup(
  script: Script,
  options: Partial<AcpOptions> & { readonly workspace?: Workspace } = {},
) {
  const agent = scripted(script);
  const { url, ...rest } = await broker();
  const { warnings, stop } = work(url, agent, options);
  return { ...rest, ...agent, url, warnings, stop };
}

/** Waits until the agent has got this. */
export const got = (agent: Pick<Scripted, "methods">, method: string, count = 1) =>
  until(() => agent.methods().filter((one) => one === method).length >= count, {
    what: `${count} ${method}`,
  });

function idOf(body: { id?: unknown }): string {
  if (typeof body.id !== "string") throw new Error(JSON.stringify(body));
  return body.id;
}
