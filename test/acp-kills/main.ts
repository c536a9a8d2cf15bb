/**
 * `npm run prove -- acp-kills`: kills workers with an ACP agent while people approve its calls. Real gateway and Redis, the
 * program's own `errand work --acp`. Limit: the agent is scripted.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { Gateway } from "../../bench/gateway.ts";
import { closeStages, Stage } from "../../bench/stage.ts";
import { orExit, parseArguments } from "../../scripts/arguments.mjs";
import { mulberry32 } from "../support/random.ts";
import { check, type Seen } from "./check.ts";

const HELP = `npm run prove -- acp-kills [options]

Delegates to workers of a scripted ACP agent, answers its questions after a random time, and kills a worker again and again. Then
it checks that no approval was handed over twice, and that each call whose effect is unknown was asked for again with that word.

  --delegations N  how many                       (200)
  --workers N      worker processes               (3)
  --slots N        slots of each                  (2)
  --every MS       the time between two kills     (1500)
  --seed N         chooses answers and kills      (random; printed)
`;
const count = (fallback: number) => ({ type: "string" as const, default: String(fallback) });
const OPTIONS = {
  delegations: count(200),
  workers: count(3),
  slots: count(2),
  every: count(1_500),
  seed: count(Date.now() % 2 ** 31),
};

const PROGRAM = fileURLToPath(new URL("../../dist/errand.js", import.meta.url));
const AGENT = fileURLToPath(new URL("agent.mjs", import.meta.url));
/** A question that is answered later is parked. */
const HOLD_SECONDS = 2;
const ANSWER_MS = 4_000;

const requestSchema = z.object({
  request_id: z.string(),
  message: z.object({ parts: z.array(z.looseObject({})) }),
});
const delegationSchema = z.object({
  id: z.string(),
  state: z.string(),
  interrupt: z.object({ id: z.string(), requests: z.array(requestSchema) }).nullable(),
  reply: z.unknown(),
});
const pageSchema = z.object({ delegations: z.array(z.looseObject({ id: z.string() })) });
const eventsSchema = z.object({
  events: z.array(
    z.looseObject({
      type: z.string(),
      status: z.string().optional(),
      interrupt: z.looseObject({ requests: z.array(requestSchema) }).optional(),
      answers: z.record(z.string(), z.looseObject({ decision: z.string().optional() })).optional(),
    }),
  ),
  cursor: z.string(),
});

const textOf = (parts: readonly object[]): string =>
  parts.flatMap((part) => ("text" in part && typeof part.text === "string" ? [part.text] : [])).join(" ");

class Run {
  readonly #stage: Stage;
  readonly #gateway: Gateway;
  readonly #folder: string;
  readonly #random: () => number;
  readonly #options: Record<keyof typeof OPTIONS, number>;
  readonly #workers: ChildProcess[] = [];
  readonly #answering = new Set<string>();
  kills = 0;

  constructor(stage: Stage, gateway: Gateway, folder: string, options: Record<keyof typeof OPTIONS, number>) {
    this.#stage = stage;
    this.#gateway = gateway;
    this.#folder = folder;
    this.#options = options;
    this.#random = mulberry32(options.seed);
  }

  async work(): Promise<Seen[]> {
    const { delegations, workers, every } = this.#options;
    await this.#gateway.call("PUT", "/v1/agents/coder", {
      limits: { max_attempts: 100, lease_seconds: 5 },
      backoff: { initial_ms: 0 },
    });
    const tags = new Map<string, string>();
    for (let n = 0; n < delegations; n += 1) {
      const task = `Do [task-${n}]`;
      const made = await this.#gateway.call("POST", "/v1/delegations", { target: "coder", task });
      tags.set(z.object({ id: z.string() }).parse(made).id, `task-${n}`);
    }
    for (let n = 0; n < workers; n += 1) this.#start(n);
    let nextKill = performance.now() + every;
    for (let left = delegations; left > 0 || !(await this.#haveEnded([...tags.keys()])); ) {
      left = await this.#answerOpen();
      process.stderr.write(`\r\u001b[K${left} of ${delegations} open, ${this.kills} kills`);
      if (performance.now() > nextKill) {
        this.#kill();
        nextKill = performance.now() + every;
      }
      await sleep(200);
    }
    process.stderr.write("\n");
    const ran = readFileSync(join(this.#folder, "ran"), "utf8").split("\n");
    const seen: Seen[] = [];
    for (const [id, tag] of tags)
      seen.push(await this.#look(id, tag, ran.filter((one) => one === tag).length));
    return seen;
  }

  stop(): void {
    for (const worker of this.#workers) end(worker);
  }

  #start(place: number): void {
    const { url, operator } = this.#gateway;
    const options = ["--agent", "coder", "--concurrency", String(this.#options.slots), "--acp"];
    const times = ["--hold", `${HOLD_SECONDS}s`, "--sticky", "1s"];
    const command = [process.execPath, AGENT, this.#folder];
    this.#workers[place] = spawn(
      process.execPath,
      [PROGRAM, "work", ...options, ...times, "--", ...command],
      {
        env: {
          PATH: process.env.PATH,
          ERRAND_URL: url,
          ERRAND_TOKEN: operator,
          XDG_STATE_HOME: join(this.#folder, "state"),
        },
        stdio: ["ignore", "ignore", process.env.KILLS_VERBOSE ? "inherit" : "ignore"],
        detached: true,
      },
    );
  }

  #kill(): void {
    const place = Math.floor(this.#random() * this.#workers.length);
    const worker = this.#workers[place];
    if (worker) end(worker);
    this.kills += 1;
    this.#start(place);
  }

  /** Answers each open question once, after a random time. Resolves to how many delegations have not ended. */
  async #answerOpen(): Promise<number> {
    const pageOf = async (state: string) =>
      pageSchema.parse(await this.#gateway.call("GET", `/v1/delegations?state=${state}&limit=100`))
        .delegations;
    const asking = await pageOf("input_required");
    for (const { id } of asking) {
      const { interrupt } = delegationSchema.parse(await this.#gateway.call("GET", `/v1/delegations/${id}`));
      if (interrupt === null || this.#answering.has(interrupt.id)) continue;
      this.#answering.add(interrupt.id);
      const answers = Object.fromEntries(
        interrupt.requests.map(({ request_id }) => [
          request_id,
          { decision: this.#random() < 0.9 ? "approve" : "deny" },
        ]),
      );
      setTimeout(() => {
        const body = { interrupt_id: interrupt.id, answers };
        this.#gateway.call("POST", `/v1/delegations/${id}/answer`, body).catch((error: unknown) => {
          process.stderr.write(`\n${id} not answered: ${String(error)}\n`);
          this.#answering.delete(interrupt.id);
        });
      }, this.#random() * ANSWER_MS);
    }
    const others = await Promise.all(["submitted", "working"].map(pageOf));
    return asking.length + others.reduce((sum, page) => sum + page.length, 0);
  }

  /** The pages of open ones are read one after the other, so one that changes its state may be on none. */
  async #haveEnded(ids: readonly string[]): Promise<boolean> {
    const states = await Promise.all(
      ids.map(
        async (id) => delegationSchema.parse(await this.#gateway.call("GET", `/v1/delegations/${id}`)).state,
      ),
    );
    return states.every((state) => ["completed", "failed", "rejected", "canceled"].includes(state));
  }

  async #look(id: string, tag: string, ran: number): Promise<Seen> {
    const { state, reply } = delegationSchema.parse(await this.#gateway.call("GET", `/v1/delegations/${id}`));
    const path = `/v1/delegations/${id}/events?after=0&limit=1000`;
    const { events } = eventsSchema.parse(await this.#gateway.call("GET", path));
    const decisions = new Map(events.flatMap(({ answers = {} }) => Object.entries(answers)));
    const questions = events
      .filter(({ status }) => status === "interrupted")
      .flatMap(({ interrupt }) => interrupt?.requests ?? [])
      .map(({ request_id, message }) => ({
        text: textOf(message.parts),
        decision: decisions.get(request_id)?.decision,
      }));
    const fields = await this.#stage.redis.hkeys(`{errand:0}:d:${id}`);
    return {
      id,
      tag,
      state,
      answer: answerIn(reply),
      ends: events.filter(({ type }) => type === "DELEGATION_COMPLETE" || type === "DELEGATION_FAILED")
        .length,
      questions,
      used: fields.filter((name) => name.startsWith("used:")).length,
      ran,
    };
  }
}

const replySchema = z.looseObject({ parts: z.array(z.looseObject({})) });
const answerIn = (reply: unknown): string => textOf(replySchema.safeParse(reply).data?.parts ?? []);

/** The worker alone: its agents notice that it is gone. */
function end(worker: ChildProcess): void {
  worker.kill("SIGKILL");
}

async function main(): Promise<void> {
  const { values } = orExit(HELP, () => parseArguments(process.argv.slice(2), OPTIONS));
  const options = {
    delegations: Number(values.delegations),
    workers: Number(values.workers),
    slots: Number(values.slots),
    every: Number(values.every),
    seed: Number(values.seed),
  };
  const folder = mkdtempSync(join(tmpdir(), "errand-kills-"));
  const stage = await Stage.open();
  const gateway = await Gateway.start(stage);
  const run = new Run(stage, gateway, folder, options);
  try {
    process.stderr.write(`seed ${options.seed}\n`);
    const seen = await run.work();
    const sum = (of: (one: Seen) => number) => seen.reduce((total, one) => total + of(one), 0);
    const again = seen.filter(({ questions }) => questions.length > 1).length;
    const found = check(seen);
    process.stdout.write(
      `${seen.length} delegations, ${run.kills} kills, ${sum((one) => one.questions.length)} questions, ` +
        `${sum((one) => one.used)} answers used, ${sum((one) => one.ran)} calls ran, ${again} asked again\n` +
        `${found.length === 0 ? "clean" : found.join("\n")}\n`,
    );
    if (found.length > 0) process.exitCode = 1;
  } finally {
    run.stop();
    await gateway.stop();
    await stage.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void closeStages().finally(() => process.exit(130)));
}
await main();
process.exit();
