/**
 * A broker, an agent and a caller, live: six delegations, one of which fails and one of which is canceled.
 * Exits 0 only if each ended as it should. Limit: needs a build (`npm run demo` makes one).
 */
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { Admin, Delegator } from "../src/index.ts";
import { type DelegationEvent, progressSchema } from "../src/schema/index.ts";
import { Child } from "./child.ts";
import { answerOf, isLast, JOBS, type Job, problemsOf, problemsOfOrder } from "./expected.ts";

if (process.argv.includes("--help")) {
  process.stdout.write(`usage: demo.ts

Runs a broker, an agent and six delegations, and stops them all.
`);
  process.exit(0);
}

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const MAIN = join(ROOT, "dist", "errand.js");
const AGENT = "librarian";
const CALLER = "caller:demo";
/** The agent pauses this long for each file, so that progress is visible. */
const PAUSE_MS = 40;
const ANSWER_LINES = 6;
/** The part of the minute that the work may take; the rest is for an orderly stop. */
const WORK_MS = 40_000;
const AGENT_STOP_MS = 4_000;
const BROKER_STOP_MS = 12_000;
const DEADLINE_MS = 60_000;

interface Started {
  readonly name: string;
  readonly child: Child;
  readonly stopMs: number;
}

class Interrupted extends Error {
  readonly exitCode: number;

  constructor(signal: "SIGINT" | "SIGTERM" | "SIGHUP") {
    super(`interrupted by ${signal}`);
    this.exitCode = 128 + constants.signals[signal];
  }
}

async function main(): Promise<number> {
  const startedAt = performance.now();
  const ending = endingOf(process);
  const started: Started[] = [];
  const problems: string[] = [];
  const dataDir = await mkdtemp(join(tmpdir(), "errand-demo-"));
  try {
    problems.push(...(await run(dataDir, started, ending)));
  } catch (error) {
    ending.abort(error);
    const why: unknown = ending.signal.reason;
    problems.push(why instanceof Error ? why.message : String(why));
  }
  print("");
  // The agent first: it releases its leases.
  for (const { name, child, stopMs } of started.reverse()) {
    const { code, signal } = await child.stop(stopMs);
    // An interrupted delegation may not have reached its expected end.
    const clean = code === 0 || (signal === "SIGTERM" && problems.length > 0);
    if (!clean) problems.push(`the ${name} did not end cleanly (${signal ?? `exit code ${code}`})`);
  }
  await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });

  const took = `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
  if (problems.length === 0) print(`demo: ok, ${JOBS.length} delegations ended as expected, ${took}`);
  for (const problem of problems) complain(problem);
  if (ending.signal.reason instanceof Interrupted) return ending.signal.reason.exitCode;
  return problems.length === 0 ? 0 : 1;
}

/** Aborts on Ctrl-C and similar signals, when the output is closed, and when time is up. */
function endingOf({ stdout, stderr }: NodeJS.Process): AbortController {
  const ending = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => ending.abort(new Interrupted(signal)));
  }
  for (const stream of [stdout, stderr]) stream.on("error", (error) => ending.abort(error));
  const after = (ms: number, what: () => void) => void setTimeout(what, ms).unref();
  after(WORK_MS, () => ending.abort(new Error(`not finished after ${WORK_MS / 1000} s`)));
  after(DEADLINE_MS, () => {
    complain(`not ended after ${DEADLINE_MS / 1000} s`);
    process.exit(1);
  });
  return ending;
}

/** Delegations that did not end as expected. */
async function run(dataDir: string, started: Started[], ending: AbortController): Promise<string[]> {
  const { signal } = ending;
  const start = (name: string, stopMs: number, args: readonly string[], env: Record<string, string>) => {
    signal.throwIfAborted();
    const child = new Child(args, { cwd: ROOT, env, onLine: (line) => print(`[${name}] ${line}`) });
    started.push({ name, child, stopMs });
    void child.exited.then(() => ending.abort(new Error(`the ${name} ended by itself`)));
  };

  if (!existsSync(MAIN)) throw new Error("dist/errand.js is missing: run 'npm run build' first");
  start("broker", BROKER_STOP_MS, [MAIN, "serve"], {
    ERRAND_PORT: "0",
    ERRAND_DATA_DIR: dataDir,
    ERRAND_LOG_LEVEL: "warn",
  });
  const url = await ready(dataDir, signal);
  const { callerToken, agentToken } = await setUp(url, dataDir, signal);
  const delegator = new Delegator({ url, token: callerToken });

  print("\nSix delegations. Nobody is at work yet, so they wait; one is canceled meanwhile.\n");
  const delegating = delegateAll(delegator, signal).then((jobs) => {
    // By the same options: they let Node run TypeScript.
    const args = [...process.execArgv, "examples/librarian.ts", "--agent", AGENT, "--pause", `${PAUSE_MS}`];
    start(AGENT, AGENT_STOP_MS, args, { ERRAND_URL: url, ERRAND_TOKEN: agentToken });
    return jobs;
  });
  const [jobs, events] = await Promise.all([delegating, follow(delegator, signal)]);

  print("\nThe answers:");
  const problems = problemsOfOrder(jobs, events);
  for (const [id, job] of jobs) {
    const delegation = await delegator.get(id, { signal });
    print(`\n${short(id)}  ${job.folder}, ${delegation.state}`);
    const lines = answerOf(delegation).split("\n");
    for (const line of lines.slice(0, ANSWER_LINES)) print(`        ${line}`);
    if (lines.length > ANSWER_LINES) print("        ...");
    problems.push(...problemsOf(job, delegation, events));
  }
  return problems;
}

/** The broker's address, once it reports that it is ready. */
async function ready(dataDir: string, signal: AbortSignal): Promise<string> {
  for (;;) {
    try {
      const text = await readFile(join(dataDir, "gateway.json"), "utf8");
      const { url } = z.object({ url: z.string() }).parse(JSON.parse(text));
      if ((await fetch(`${url}/readyz`, { signal })).status === 200) return url;
    } catch {
      // The file is missing or half written.
    }
    await sleep(20, undefined, { signal });
  }
}

/** The operator's setup: creates an agent, and a token each for it and for its caller. */
async function setUp(url: string, dataDir: string, signal: AbortSignal) {
  const operator = (await readFile(join(dataDir, "operator-token"), "utf8")).trim();
  const admin = new Admin({ url, token: operator });
  await admin.putAgent(AGENT, { description: "counts what is in a folder of source files" }, { signal });
  const caller = await admin.createToken(CALLER, { signal });
  const agent = await admin.createToken(`agent:${AGENT}`, { signal });
  return { callerToken: caller.token, agentToken: agent.token };
}

async function delegateAll(delegator: Delegator, signal: AbortSignal): Promise<Map<string, Job>> {
  const jobs = new Map<string, Job>();
  for (const job of JOBS) {
    const { folder, priority, ends } = job;
    const { id } = await delegator.delegate({ target: AGENT, task: folder, priority }, { signal });
    jobs.set(id, job);
    if (ends === "canceled") await delegator.cancel(id, "changed my mind", { signal });
  }
  return jobs;
}

/** Prints each event as it arrives, until all delegations have ended; from the beginning, so that none is missed. */
async function follow(delegator: Delegator, signal: AbortSignal): Promise<DelegationEvent[]> {
  const seen: DelegationEvent[] = [];
  const ended = new Set<string>();
  for await (const event of delegator.watch({ delegator: CALLER }, { after: "0", signal })) {
    if (event.type === "DELEGATION_SNAPSHOT" || event.type === "RESET") continue;
    print(lineOf(event));
    seen.push(event);
    if (isLast(event)) ended.add(event.delegation_id);
    if (ended.size === JOBS.length) break;
  }
  return seen;
}

const detailsSchema = z.object({
  task_preview: z.string().optional(),
  priority: z.number().optional(),
  attempt: z.number().optional(),
  progress: progressSchema.optional(),
  duration_ms: z.number().optional(),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
});

/** Time (UTC), delegation, type, status, and details. */
function lineOf(event: DelegationEvent): string {
  const { task_preview, priority, attempt, progress, duration_ms, error } = detailsSchema.parse(event);
  const details = [
    task_preview && `${task_preview}, priority ${priority}`,
    event.status === "leased" && `attempt ${attempt}`,
    progress && `${progress.done}/${progress.total} ${progress.current_step}`,
    duration_ms !== undefined && `in ${duration_ms} ms`,
    error && (error.code === event.state ? error.message : `${error.code}: ${error.message}`),
  ];
  const type = event.type.padEnd("DELEGATION_COMPLETE".length);
  const status = (event.status ?? event.state).padEnd("completed".length);
  const said = details.filter((detail) => typeof detail === "string").join(", ");
  return [event.at.slice(11, 23), short(event.delegation_id), type, status, said].join("  ");
}

function short(id: string): string {
  return id.slice(-6);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function complain(problem: string): void {
  process.stderr.write(`demo: FAILED: ${problem}\n`);
}

process.exitCode = await main();
