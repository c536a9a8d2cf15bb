/** A worker with the scripted program of test/support/claude-program.mjs, at a real broker. */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { z } from "zod";
import { ChildProcesses } from "../../../src/cli/work/child.ts";
import type { ClaudeOptions } from "../../../src/cli/work/claude/setup.ts";
import { ClaudeWorker } from "../../../src/cli/work/claude/worker.ts";
import { here, type Workspace } from "../../../src/cli/work/workspace.ts";
import { Agent } from "../../../src/client/agent.ts";
import { OPERATOR } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { broker } from "../acp/agent.ts";

const PROGRAM = fileURLToPath(new URL("../../support/claude-program.mjs", import.meta.url));

export type Step = Readonly<Record<string, unknown>>;
export interface Script {
  readonly turns: readonly (readonly Step[])[];
  readonly [member: string]: unknown;
}

const entrySchema = z.looseObject({ pid: z.number(), method: z.string() });

export const say = (text: string): Step => ({ say: text });
export const bash = (command: string) => ({ name: "Bash", input: { command } });
export const run = (command: string): Step => ({ use: [bash(command)] });

/** A folder with the program, its script, and what it has written there. */
export function scripted(script: Script) {
  const folder = mkdtempSync(join(tmpdir(), "errand-claude-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "script.json"), JSON.stringify(script));
  const program = join(folder, "claude");
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${PROGRAM}' '${folder}' "$@"\n`);
  chmodSync(program, 0o755);
  const log = (method?: string) => {
    const file = join(folder, "log.jsonl");
    return (existsSync(file) ? readFileSync(file, "utf8") : "")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => entrySchema.parse(JSON.parse(line)))
      .filter((entry) => method === undefined || entry.method === method);
  };
  const prompts = () => log("user").map(({ text }) => String(text));
  const ran = () => log("ran").map(({ input }) => Object(input).command);
  return { folder, program, log, prompts, ran };
}

export type Scripted = ReturnType<typeof scripted>;

/** Works for `coder` until the test ends, or `stop` is called. */
export function work(
  url: string,
  { program, folder }: Pick<Scripted, "program" | "folder">,
  options: Partial<ClaudeOptions> & { readonly workspace?: Workspace } = {},
) {
  const { workspace = here(), ...rest } = options;
  const warnings: string[] = [];
  const children = new ChildProcesses();
  const worker = new ClaudeWorker({
    program,
    extra: [],
    children,
    environment: { inherited: { PATH: process.env.PATH, ERRAND_TOKEN: "secret" }, url },
    limits: {},
    stateHome: join(folder, "state"),
    warn: (text) => warnings.push(text),
    holdMs: 0,
    stickyMs: 0,
    parks: false,
    collectMs: 50,
    settleMs: 0,
    ...rest,
  });
  const agent = new Agent(
    { url, token: OPERATOR, agent: "coder", failFast: false },
    (task) => worker.run(task, workspace),
    // As the program.
    { tellsErrors: true },
  );
  const running = agent.run();
  running.catch(() => undefined);
  const stop = () => agent.stop();
  onTestFinished(async () => {
    await stop();
  });
  return { warnings, stop, children };
}

/** The broker and one worker. `answer` answers the open question of a delegation, and waits for what follows. */
export async function setup(
  script: Script,
  options: Partial<ClaudeOptions> & { readonly workspace?: Workspace } = {},
) {
  const program = scripted(script);
  const { url, ...rest } = await broker();
  const worker = work(url, program, options);
  const answer = async (id: string, interrupt: string, given: Record<string, unknown>) => {
    const answered = await rest.api.answer(id, interrupt, given);
    if (answered.body.code !== undefined) throw new Error(JSON.stringify(answered.body));
    return rest.ended(id);
  };
  /** One delegation, until it ends or asks. */
  const begin = async (more: Record<string, unknown> = {}) => {
    const id = await rest.delegate(more);
    return { id, ...(await rest.ended(id)) };
  };
  return { ...rest, ...program, ...worker, url, answer, begin };
}

/** Waits until the program has logged this. */
export const got = (program: Pick<Scripted, "log">, method: string, count = 1) =>
  until(() => program.log(method).length >= count, { what: `${count} ${method}` });
