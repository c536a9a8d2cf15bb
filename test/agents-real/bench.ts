/** What a cell works with: a broker, the scripted model, and workers that run a real program. All of it is ended at the end. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { PresetName } from "../../src/cli/work/presets/programs.ts";
import { Delegator } from "../../src/client/delegator.ts";
import type { Delegation } from "../../src/schema/delegation.ts";
import { type ScriptedModel, startScriptedModel } from "../support/scripted-model/server.ts";
import { until } from "../support/until.ts";
import { install } from "./install.ts";
import type { RealProgram } from "./programs.ts";

const MAIN = fileURLToPath(new URL("../../dist/errand.js", import.meta.url));
const SAID_MAX = 6000;
const execute = promisify(execFile);

export interface BenchBroker {
  readonly url: string;
  /** The operator's. */
  readonly token: string;
  readonly close?: () => Promise<void>;
}

export class Bench {
  readonly folder = mkdtempSync(join(tmpdir(), "errand-agents-"));
  readonly #children = new Set<ChildProcess>();
  #broker: BenchBroker | undefined;
  #model: ScriptedModel | undefined;

  /** `broker` starts another broker than the program itself. */
  async start(broker?: (dataDir: string) => Promise<BenchBroker>): Promise<void> {
    this.#model = await startScriptedModel();
    const data = join(this.folder, "data");
    this.#broker = await (broker?.(data) ?? this.#serve(data));
  }

  async #serve(data: string): Promise<BenchBroker> {
    const said = this.run("broker", ["serve"], { ERRAND_DATA_DIR: data, ERRAND_PORT: "0" }, this.folder);
    const url = await until(() => /errand is ready at (\S+)/.exec(said.text())?.[1], { what: "the broker" });
    return { url, token: readFileSync(join(data, "operator-token"), "utf8").trim() };
  }

  get broker(): BenchBroker {
    if (this.#broker === undefined) throw new Error("not started");
    return this.#broker;
  }

  get model(): ScriptedModel {
    if (this.#model === undefined) throw new Error("not started");
    return this.#model;
  }

  /** `errand ARGUMENTS`, with nothing of this run's environment. */
  run(name: string, args: readonly string[], env: Readonly<Record<string, string>>, cwd: string) {
    const path = env.PATH ?? `${dirname(process.execPath)}${delimiter}/usr/local/bin:/usr/bin:/bin`;
    const { ERRAND_REDIS_BIN } = process.env;
    const child = spawn(process.execPath, [MAIN, ...args], {
      cwd,
      env: { HOME: this.folder, ...(ERRAND_REDIS_BIN && { ERRAND_REDIS_BIN }), ...env, PATH: path },
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#children.add(child);
    let text = "";
    child.stderr.on("data", (chunk) => {
      text = `${text}${chunk}`.slice(-SAID_MAX);
    });
    return { name, child, text: () => text };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#children].reverse().map(stopped));
    await this.#broker?.close?.();
    await this.#model?.close();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  const late = setTimeout(() => child.kill("SIGKILL"), 15_000);
  await ended;
  clearTimeout(late);
}

/** One real program in a home of its own. */
export class Subject {
  readonly bench: Bench;
  readonly delegator: Delegator;
  /** Where it works. */
  readonly project: string;
  readonly preset: PresetName;
  readonly #program: RealProgram;
  readonly #home: string;
  #packages = "";
  #env: Readonly<Record<string, string>> = {};
  #workers: { readonly name: string; readonly child: ChildProcess; readonly text: () => string }[] = [];

  constructor(bench: Bench, preset: PresetName, program: RealProgram) {
    this.bench = bench;
    this.preset = preset;
    this.#program = program;
    this.#home = join(bench.folder, preset, "home");
    this.project = join(bench.folder, preset, "project");
    this.delegator = new Delegator({ ...bench.broker });
  }

  async prepare(cache: string): Promise<void> {
    const { packages, prepare } = this.#program;
    this.#packages = await install(cache, packages);
    for (const folder of [this.#home, this.project]) mkdirSync(folder, { recursive: true });
    await once(spawn("git", ["init", "--quiet"], { cwd: this.project, stdio: "ignore" }), "exit");
    this.#env = await prepare({ packages: this.#packages, home: this.#home, model: this.bench.model.url });
  }

  /** In which the program runs, with its home and its settings. */
  get environment(): Readonly<Record<string, string>> & { readonly PATH: string } {
    const path = [
      ...[join(this.#packages, "node_modules/.bin"), dirname(process.execPath)],
      ...["/usr/local/bin", "/usr/bin", "/bin"],
    ].join(delimiter);
    return { ...this.#env, PATH: path, HOME: this.#home };
  }

  /** Starts a worker for the agent. All workers share the home, and so the conversations. */
  work(agent: string, args: readonly string[] = [], token = this.bench.broker.token): ChildProcess {
    const own = ["work", "--agent", agent, "--preset", this.preset, "--lease", "10s"];
    const env = {
      ...this.environment,
      XDG_STATE_HOME: join(this.#home, "state"),
      ERRAND_URL: this.bench.broker.url,
      ERRAND_TOKEN: token,
    };
    const worker = this.bench.run(agent, [...own, ...(this.#program.args ?? []), ...args], env, this.project);
    this.#workers.push(worker);
    return worker.child;
  }

  /** A worker that runs this command instead of the program. */
  workWith(agent: string, command: readonly string[]): ChildProcess {
    const { url, token } = this.bench.broker;
    const env = { ...this.environment, ERRAND_URL: url, ERRAND_TOKEN: token };
    const worker = this.bench.run(agent, ["work", "--agent", agent, "--", ...command], env, this.project);
    this.#workers.push(worker);
    return worker.child;
  }

  async stop(child: ChildProcess): Promise<void> {
    await stopped(child);
    this.#workers = this.#workers.filter((one) => one.child !== child);
  }

  async stopAll(): Promise<void> {
    await Promise.all(this.#workers.map(({ child }) => this.stop(child)));
  }

  async delegate(target: string, task: string, more: object = {}): Promise<string> {
    await this.#exists(target);
    return (await this.delegator.delegate({ target, task, ...more })).id;
  }

  /** The worker creates the agent. */
  #exists(agent: string): Promise<unknown> {
    return until(async () => (await this.raw(`/v1/agents/${agent}`)).name === agent, {
      what: `agent ${agent}`,
    });
  }

  async raw(path: string, init: RequestInit = {}): Promise<Readonly<Record<string, unknown>>> {
    const { url, token } = this.bench.broker;
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    return Object(await (await fetch(`${url}${path}`, { headers, ...init })).json());
  }

  /** What a person gets from `errand ARGUMENTS` with this token. */
  async errand(args: readonly string[], token: string): Promise<string> {
    const env = { ...this.environment, ERRAND_URL: this.bench.broker.url, ERRAND_TOKEN: token };
    return (await execute(process.execPath, [MAIN, ...args], { cwd: this.project, env })).stdout;
  }

  /** The delegation once it has ended, or its question once it is another than `before`. */
  async next(id: string, before?: string) {
    const seen = await this.#until(
      id,
      (one) => isOver(one) || (one.interrupt !== null && one.interrupt.id !== before),
    );
    const [request] = seen.interrupt?.requests ?? [];
    if (!seen.interrupt || !request) return seen;
    return { id: seen.interrupt.id, request, isHeld: seen.lease !== null };
  }

  async question(id: string) {
    const next = await this.next(id);
    if ("state" in next) throw new Error(`it asked nothing: ${briefly(next)}`);
    return next;
  }

  ended(id: string): Promise<Delegation> {
    return this.#until(id, isOver);
  }

  async #until(id: string, is: (delegation: Delegation) => boolean): Promise<Delegation> {
    return until(
      async () => {
        const found = await this.delegator.get(id);
        return is(found) ? found : undefined;
      },
      { what: `delegation ${id}`, timeoutMs: 10 * 60_000 },
    );
  }

  has(name: string): boolean {
    return existsSync(join(this.project, name));
  }

  read(name: string): string {
    return this.has(name) ? readFileSync(join(this.project, name), "utf8") : "";
  }

  write(name: string, text = "", mode?: number): void {
    writeFileSync(join(this.project, name), text, { mode });
  }

  /** What was seen, for a cell that failed. */
  async seen(id: string | undefined): Promise<string> {
    const delegation = id === undefined ? "" : JSON.stringify(await this.delegator.get(id).catch(String));
    const model = this.bench.model.log.slice(-8).join("\n");
    const workers = this.#workers.map(({ name, text }) => `worker ${name}:\n${text()}`).join("\n");
    return [delegation, `model:\n${model}`, workers, `files: ${readdirSync(this.project).join(" ")}`].join(
      "\n",
    );
  }
}

const isOver = ({ state }: Delegation): boolean =>
  ["completed", "failed", "canceled", "rejected"].includes(state);

export const briefly = ({ state, error, reply }: Delegation): string =>
  JSON.stringify({ state, error: error?.message, code: error?.code, reply: reply?.parts });
