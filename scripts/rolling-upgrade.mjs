/**
 * Replaces two gateways of one build by another build, one after the other under load, goes back once, and checks that
 * subscribers, delegators and workers notice nothing: each event once and in order, each delegation ended once.
 *
 * A commit is built in a temporary worktree. Limit: POSIX; both builds must read the same layout of the data.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { homedir, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { orExit, parseArguments, positive, WrongArguments } from "./arguments.mjs";
import { OPERATOR, send } from "./call-broker.mjs";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
/** How long a call may wait for its answer, before it is repeated. */
const ANSWER_MS = 20_000;
const HELP = `npm run prove -- upgrade --from BUILD [options]

A BUILD is a commit, or a folder with a clone that is built.

  --from BUILD   the build that is replaced
  --to BUILD     the build that replaces it  (this folder)
  --seconds N    how long each phase takes  (8)
`;
const { values } = orExit(HELP, () => {
  const parsed = parseArguments(process.argv.slice(2), {
    from: { type: "string" },
    to: { type: "string", default: ROOT },
    seconds: { type: "string", default: "8" },
  });
  positive("seconds", parsed.values.seconds);
  if (parsed.values.from === undefined && !parsed.values.help)
    throw new WrongArguments("Name the build that is replaced: --from BUILD.");
  return parsed;
});
const PHASE_MS = 1_000 * Number(values.seconds);
const folder = mkdtempSync(join(tmpdir(), "errand-rolling-"));
const worktrees = [];
const children = new Set();

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}

async function patiently(work, what) {
  for (let tries = 0; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (tries > 300) throw new Error(`${what}: ${error.message}`);
      await sleep(100);
    }
  }
}

function run(command, args, options) {
  const child = spawn(command, args, { stdio: ["ignore", "ignore", "inherit"], ...options });
  children.add(child);
  child.once("exit", () => children.delete(child));
  return child;
}

/** The program of a build; `name` says which one. */
function programOf(build, name) {
  const program = (clone) => join(clone, "dist", "errand.js");
  if (existsSync(program(build))) return program(resolve(build));
  console.log(`building ${build} …`);
  const quiet = { stdio: ["ignore", "ignore", "inherit"] };
  const worktree = join(folder, name);
  execFileSync("git", ["-C", ROOT, "worktree", "add", "--detach", worktree, build], quiet);
  worktrees.push(worktree);
  execFileSync("npm", ["ci", "--no-audit", "--no-fund", "--prefer-offline"], { ...quiet, cwd: worktree });
  execFileSync("npm", ["run", "build"], { ...quiet, cwd: worktree });
  return program(worktree);
}

async function startRedis() {
  const { findRedisServer } = await import(join(ROOT, "build", "redis", "embedded", "find-server.js"));
  const { command, env } = await findRedisServer({
    configured: process.env.ERRAND_REDIS_BIN,
    path: process.env.PATH ?? "",
    cacheDir: join(homedir(), ".cache", "errand"),
    announce: console.error,
  });
  const socket = join(folder, "redis.sock");
  const settings = ["--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder];
  run(command, [...settings, "--maxmemory", "512mb"], { env: { ...process.env, ...env } });
  await patiently(async () => {
    if (!existsSync(socket)) throw new Error("no socket yet");
  }, "Redis");
  return `unix:${socket}`;
}

/** A place for gateways: the next one takes over the port. */
async function gatewayAt(port, redis, name, program) {
  const url = `http://127.0.0.1:${port}`;
  const child = run(process.execPath, [program, "serve"], {
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      ERRAND_DATA_DIR: join(folder, `data-${port}`),
      ERRAND_REDIS_URL: redis,
      ERRAND_PORT: String(port),
      ERRAND_OPERATOR_TOKEN: OPERATOR,
      ERRAND_LOG_LEVEL: "error",
    },
  });
  await patiently(async () => {
    if (child.exitCode !== null) throw new Error(`a gateway ended with ${child.exitCode}`);
    if (!(await fetch(`${url}/readyz`)).ok) throw new Error("not ready");
  }, `the gateway of the ${name} build`);
  const stop = async () => {
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    const [code] = await ended;
    if (code !== 0) problems.push(`a gateway of the ${name} build ended with ${code}`);
  };
  return { stop };
}

const problems = [];
const counts = { requests: 0, repeated: 0, reconnects: 0, moved: 0 };
const urls = [];
const other = (url) => urls[(urls.indexOf(url) + 1) % urls.length];
const anyUrl = () => urls[Math.floor(Math.random() * urls.length)];

/** As clients do: a call without an answer, or with a 503, is repeated elsewhere. Everything sent here may be repeated. */
async function call(method, path, body, headers = {}, url = anyUrl()) {
  for (let at = url, tries = 0; ; tries += 1, at = other(at)) {
    counts.requests += 1;
    const answer = await send(at, method, path, body, headers, ANSWER_MS).catch(() => null);
    if (answer !== null && answer.status !== 503) return { ...answer, url: at };
    counts.repeated += 1;
    if (tries > 100) throw new Error(`${method} ${path} got no answer`);
    await sleep(50);
  }
}

/** Reads all events at one gateway after the other: when it is cut, and every second, it goes to the other one. */
function subscribe(name) {
  const seen = [];
  let cursor = "0";
  let isStopped = false;
  let cut = new AbortController();
  const timer = setInterval(() => {
    counts.moved += 1;
    cut.abort();
  }, 1_000);
  const read = async () => {
    for (let url = anyUrl(); !isStopped; url = other(url)) {
      cut = new AbortController();
      try {
        const response = await fetch(`${url}/v1/events?after=${cursor}`, {
          headers: {
            authorization: `Bearer ${OPERATOR}`,
            accept: "text/event-stream",
            "last-event-id": cursor,
          },
          signal: cut.signal,
        });
        counts.reconnects += 1;
        let text = "";
        for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
          text += chunk;
          const frames = text.split("\n\n");
          text = frames.pop() ?? "";
          for (const frame of frames) {
            const field = (label) =>
              frame
                .split("\n")
                .find((line) => line.startsWith(`${label}:`))
                ?.slice(label.length + 1)
                .trim();
            const data = field("data");
            cursor = field("id") ?? cursor;
            if (data === undefined) continue;
            const event = JSON.parse(data);
            if (event.type === "RESET") problems.push(`${name} got a RESET`);
            else if (event.delegation_id) seen.push(event);
          }
        }
      } catch {
        await sleep(20);
      }
    }
  };
  const reading = read();
  const stop = async () => {
    isStopped = true;
    clearInterval(timer);
    cut.abort();
    await reading;
  };
  return { name, seen, stop };
}

const AGENTS = ["alpha", "beta", "gamma"];
const sent = new Set();
let isLoading = true;
const isDone = { delegators: false };

async function delegator(name) {
  for (let n = 0; isLoading; n += 1) {
    const target = AGENTS[n % AGENTS.length];
    const key = { "idempotency-key": `${name}-${n}` };
    const { status, body, url } = await call(
      "POST",
      "/v1/delegations",
      { target, task: `${name} ${n}` },
      key,
    );
    if (status !== 202 && status !== 200)
      problems.push(`a submit was answered with ${status}: ${body?.code}`);
    else sent.add(body.id);
    const again = await call("POST", "/v1/delegations", { target, task: `${name} ${n}` }, key, other(url));
    if (again.body?.id !== body.id) problems.push(`the key ${name}-${n} led to two delegations`);
    await sleep(30);
  }
}

/** How long the last work may take. */
const PATIENCE_MS = 60_000;

/** Takes work at one gateway, and sends the heartbeat, the question and the reply to others. */
async function worker(agent) {
  let endsAt = Number.POSITIVE_INFINITY;
  while (!isDone.delegators || finished.size < sent.size) {
    if (isDone.delegators) endsAt = Math.min(endsAt, Date.now() + PATIENCE_MS);
    if (Date.now() > endsAt) {
      problems.push(
        `${sent.size - finished.size} delegations were not finished within ${PATIENCE_MS / 1000} s`,
      );
      return;
    }
    const { body } = await call("POST", `/v1/agents/${agent}/leases`, { wait_seconds: 2, lease_seconds: 5 });
    for (const { lease_id: lease, delegation } of body?.leases ?? []) await workOn(lease, delegation);
  }
}

const finished = new Set();

async function workOn(lease, { id, history, attempt }) {
  const step = async (path, body) => {
    const { status, body: answer } = await call("POST", `/v1/leases/${lease}/${path}`, body);
    // A repeated request of a gateway that stopped may have been done.
    if (status >= 400 && answer?.code !== "lease_lost")
      problems.push(`${path} got ${status} ${answer?.code}`);
    return status < 400 ? answer : null;
  };
  await step("heartbeat", { progress: { message: `attempt ${attempt}` } });
  if (history.length === 0 && Number.parseInt(id.slice(-1), 36) % 4 === 0) {
    const asked = await step("interrupt", { kind: "input", text: "which one?" });
    if (asked)
      await call("POST", `/v1/delegations/${id}/answer`, { interrupt_id: asked.interrupt_id, text: "a" });
    return;
  }
  await step("artifacts", { artifact: { artifactId: "out", parts: [{ text: id }] } });
  if (await step("reply", { state: "completed", text: `for ${id}` })) finished.add(id);
  else {
    const { body } = await call("GET", `/v1/delegations/${id}`);
    if (body.state === "completed") finished.add(id);
  }
}

/** A delegation's events as a subscriber saw them: numbered without a gap, one end, at the end. */
function checkSeen({ name, seen }) {
  const bySubject = new Map();
  for (const event of seen) {
    const all = bySubject.get(event.delegation_id) ?? [];
    all.push(event);
    bySubject.set(event.delegation_id, all);
  }
  for (const id of sent) {
    const events = bySubject.get(id) ?? [];
    const numbers = events.map(({ seq }) => seq);
    if (numbers.some((seq, at) => seq !== at + 1)) problems.push(`${name} saw ${id} as ${numbers.join(" ")}`);
    const ends = events.filter(({ state }) =>
      ["completed", "failed", "canceled", "rejected"].includes(state),
    );
    if (ends.length !== 1 || ends[0] !== events.at(-1))
      problems.push(`${name} saw ${ends.length} ends of ${id}`);
  }
  return seen.length;
}

async function main() {
  const [first, second] = [programOf(values.from, "first"), programOf(values.to, "second")];
  const redis = await startRedis();
  const ports = [await freePort(), await freePort()];
  urls.push(...ports.map((port) => `http://127.0.0.1:${port}`));
  const places = [];
  for (const port of ports) places.push(await gatewayAt(port, redis, "first", first));
  for (const agent of AGENTS) await call("PUT", `/v1/agents/${agent}`, { limits: { max_attempts: 20 } });
  const subscribers = ["subscriber 1", "subscriber 2", "subscriber 3"].map(subscribe);
  const delegators = ["a", "b", "c"].map(delegator);
  const workers = AGENTS.flatMap((agent) => [worker(agent), worker(agent)]);
  const replace = async (at, name, program) => {
    await sleep(PHASE_MS);
    await places[at].stop();
    places[at] = await gatewayAt(ports[at], redis, name, program);
    console.log(`gateway ${at + 1} is of the ${name} build; ${sent.size} delegations so far`);
  };
  await replace(0, "second", second);
  await replace(0, "first", first);
  await replace(0, "second", second);
  await replace(1, "second", second);
  await sleep(PHASE_MS);
  isLoading = false;
  await Promise.all(delegators);
  isDone.delegators = true;
  await Promise.all(workers);
  await patiently(async () => {
    const behind = subscribers.filter(
      ({ seen }) => new Set(seen.map((event) => event.delegation_id)).size < sent.size,
    );
    const open = subscribers.some(
      ({ seen }) => seen.filter(({ state }) => state === "completed").length < sent.size,
    );
    if (behind.length > 0 || open) throw new Error("a subscriber has not seen all");
  }, "the subscribers").catch((error) => problems.push(error.message));
  for (const subscriber of subscribers) await subscriber.stop();
  const events = subscribers.map(checkSeen);
  for (const id of sent) {
    const { body } = await call("GET", `/v1/delegations/${id}`);
    if (body.state !== "completed") problems.push(`${id} is ${body.state}`);
  }
  for (const place of places) await place.stop();
  console.log(
    JSON.stringify({
      from: values.from,
      to: values.to,
      delegations: sent.size,
      events,
      ...counts,
      problems: problems.length,
    }),
  );
  for (const problem of problems.slice(0, 20)) console.error(problem);
  return problems.length === 0 ? 0 : 1;
}

let code = 1;
try {
  code = await main();
} finally {
  for (const child of children) child.kill("SIGKILL");
  for (const worktree of worktrees)
    execFileSync("git", ["-C", ROOT, "worktree", "remove", "--force", worktree]);
  rmSync(folder, { recursive: true, force: true });
}
process.exit(code);
