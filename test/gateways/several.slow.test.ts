/** Two gateways on one port under a supervisor, as processes. Each start costs seconds, so a test is a story. */
import { Agent, request as sendRequest } from "node:http";
import { expect, test } from "vitest";
import { type Answer, client, request } from "../support/broker.ts";
import { openSession } from "../support/mcp.ts";
import { errand, freshDir, serveIn } from "../support/program.ts";
import { allowStalls } from "../support/stalls.ts";
import { subscribe } from "../support/subscriber.ts";
import { until } from "../support/until.ts";

interface GatewayRow {
  readonly number: number;
  readonly pid: number;
  readonly state: string;
  readonly restarts: number;
}

/** Longer than any answer takes, on a busy machine too. */
const PATIENCE_MS = 15_000;
/** Short, because the load ends with a poll that finds nothing. */
const POLL_SECONDS = 0.2;
const JSON_ONLY = { accept: "application/json" };

const serveTwo = (dir: string) => serveIn(dir, { ERRAND_WORKERS: "2" });

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function gatewaysOf(url: string, token: string): Promise<readonly GatewayRow[]> {
  const { body } = await request(url, "GET", "/v1/status", { token });
  return body.gateways;
}

/** Work that must not end: delegations, polls, replies, a stream. */
function load(url: string, token: string, { mayBreak }: { mayBreak: boolean }) {
  const failures: string[] = [];
  const accepted = new Set<string>();
  const replied = new Map<string, number>();
  let enough = false;
  const names = ["ant", "bee"];
  const send = async (what: string, call: () => Promise<Answer>): Promise<Answer | null> => {
    try {
      const answer = await (mayBreak ? inTime(call()) : call());
      // A lease whose grant was lost with a gateway went to another poll.
      if (answer.status < 400 || (mayBreak && answer.body.code === "lease_lost")) return answer;
      failures.push(`${what}: ${answer.status} ${answer.body.code}`);
    } catch (error) {
      // The connection of a process that was killed.
      if (!mayBreak) failures.push(`${what}: ${String(error)} ${error instanceof Error ? error.cause : ""}`);
    }
    return null;
  };
  const api = client(url, token);
  const delegate = async (name: string, n: number) => {
    for (let i = 0; !enough; ) {
      const key = { "idempotency-key": `${name}.${n}.${i}` };
      const answer = await send("delegate", () => api.delegate(name, { task: `${n}.${i}` }, key));
      if (!answer) continue;
      const { id } = answer.body;
      accepted.add(id);
      i += 1;
      // One after the other: what is tested is that nothing fails, not how much goes.
      await until(() => replied.has(id), { what: "a reply" });
    }
  };
  const work = async (name: string) => {
    const ask = { wait_seconds: POLL_SECONDS, ...(mayBreak && { confirm_within_seconds: 2 }) };
    while (!enough || replied.size < accepted.size) {
      const leased = await send("lease", () => api.lease(name, ask));
      for (let leases = leased?.body.leases ?? []; leases.length > 0; ) {
        const [{ lease_id, delegation }] = leases;
        let answer = await send("reply", () => api.reply(lease_id, { next: ask }));
        // Whether it arrived is unknown.
        while (!answer && mayBreak) answer = await send("reply", () => api.reply(lease_id));
        if (answer && answer.status < 400) replied.set(delegation.id, (replied.get(delegation.id) ?? 0) + 1);
        leases = answer?.body.leases ?? [];
      }
    }
  };
  const stream = subscribe([url], token);
  const running = Promise.all(
    names.flatMap((name) => [delegate(name, 0), delegate(name, 1), work(name), work(name)]),
  );
  return {
    failures,
    replied,
    /** Waits until more work was done. */
    more: (count: number) => {
      const from = replied.size;
      return until(() => replied.size >= from + count, { what: "more work" });
    },
    finish: async () => {
      enough = true;
      await running;
      expect([...replied.keys()].sort()).toEqual([...accepted].sort());
      const done = () => stream.events.filter(({ event }) => event === "DELEGATION_COMPLETE").length;
      await until(() => done() >= accepted.size, { what: "the last event" });
      await stream.stop();
      // By cursor: nothing is missing, and nothing came twice.
      const { body } = await api.call("GET", "/v1/events?after=0&limit=1000", undefined, JSON_ONLY);
      expect(stream.events.map(({ id }) => id)).toEqual(body.events.map(({ id }: { id: string }) => id));
      expect(done()).toBe(accepted.size);
      return { stream, requests: accepted.size };
    },
  };
}

test("two gateways share polls, sessions and metrics; both are replaced under load and no request fails", async () => {
  const withStalls = allowStalls();
  const dir = freshDir();
  const { url, token, child, stderr, ended } = await serveTwo(dir);
  const api = client(url, token);
  const before = await gatewaysOf(url, token);
  expect(before).toMatchObject([
    { number: 1, state: "ready", restarts: 0 },
    { number: 2, state: "ready", restarts: 0 },
  ]);
  for (const name of ["ant", "bee", "idle"]) await api.agent(name);

  // Polls spread over both, and each counts once.
  const polls = Array.from({ length: 8 }, () => api.lease("idle", { wait_seconds: 60 }));
  await until(async () => (await api.call("GET", "/v1/agents/idle")).body.presence.pollers === 8);
  const metrics = async (): Promise<string> => {
    const answer = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
    expect(answer.status).toBe(200);
    return answer.text();
  };
  const figure = (text: string, name: string) => Number(text.split(`\n${name} `)[1]?.split("\n")[0]);
  expect(figure(await metrics(), "errand_parked_polls")).toBe(8);
  expect(figure(await metrics(), "errand_gateways_ready")).toBe(2);

  // A session of MCP is found on every connection.
  const session = await openSession(url, token);
  const list = () => onNewConnection(url, token, session);
  for (let n = 0; n < 4; n += 1) expect(await list()).toBe(200);

  const work = load(url, token, { mayBreak: false });
  await work.more(4);
  const moved = figure(await metrics(), 'errand_moves_total{move="submit"}');
  // The printed line names the process to signal: behind npm, a shell knows only the id of npm.
  expect(stderr()).toContain(
    `\n2 gateways; to replace them without a failed request: kill -HUP ${child.pid}\n`,
  );
  child.kill("SIGHUP");
  await until(() => stderr().includes('"gateways replaced"'), {
    what: "the new gateways",
    timeoutMs: 150_000,
  });
  // Parked polls were answered, so that their agents poll again.
  for (const poll of polls) expect((await poll).body).toEqual({ leases: [] });
  const after = await gatewaysOf(url, token);
  expect(after.map(({ number, state }) => [number, state])).toEqual([
    [1, "ready"],
    [2, "ready"],
  ]);
  expect(before.some(({ pid }) => after.some((row) => row.pid === pid) || isAlive(pid))).toBe(false);
  await work.more(4);
  // A stream ended and went on by its cursor.
  const { stream, requests } = await work.finish();
  expect(work.failures).toEqual([]);
  expect([...work.replied.values()].every((count) => count === 1)).toBe(true);
  expect(stream.opened()).toBeGreaterThan(1);
  expect(figure(await metrics(), 'errand_moves_total{move="submit"}')).toBe(requests);
  expect(moved).toBeLessThanOrEqual(requests);
  for (let n = 0; n < 4; n += 1) expect(await list()).toBe(200);

  const status = errand(dir, ["status"], { ERRAND_DATA_DIR: `${dir}/.errand` });
  expect(await status.ended()).toBe(0);
  expect(status.stdout()).toMatch(/^gateways +2 of 2 ready$/m);

  const parked = api.lease("idle", { wait_seconds: 60 });
  await until(async () => (await api.call("GET", "/v1/agents/idle")).body.presence.pollers === 1);
  const stoppedAt = performance.now();
  child.kill("SIGTERM");
  expect((await parked).body).toEqual({ leases: [] });
  expect(await ended()).toBe(0);
  expect(stderr()).toMatch(/^errand is stopping \(SIGTERM\).*; a second signal ends it at once/m);
  expect(performance.now() - stoppedAt).toBeLessThan(withStalls(10_000));
  expect(after.some(({ pid }) => isAlive(pid))).toBe(false);
  // Every line of the log is whole.
  const lines = stderr()
    .split("\n")
    .filter((line) => line.startsWith("{"));
  expect(
    lines.map((line) => JSON.parse(line).level).filter((level) => ["error", "fatal"].includes(level)),
  ).toEqual([]);
}, 300_000);

test("a killed gateway is replaced while work goes on, and nothing remains of a killed supervisor", async () => {
  const dir = freshDir();
  const { url, token, child, stderr } = await serveTwo(dir);
  const api = client(url, token);
  for (const name of ["ant", "bee", "idle"]) await api.agent(name);
  const [first, second] = await gatewaysOf(url, token);
  if (!first || !second) throw new Error("a gateway is missing");
  // A gateway that stalls gets a connection, which it will never accept.
  process.kill(first.pid, "SIGSTOP");
  const answers: (number | string)[] = [];
  const calls = Array.from({ length: 4 }, () =>
    healthOnNewConnection(url)
      .catch((error: Error) => error.message)
      .then((answer) => answers.push(answer)),
  );
  await until(() => answers.length === 3, { what: "the answers of the other gateway" });
  expect(answers).toEqual([200, 200, 200]);
  const work = load(url, token, { mayBreak: true });
  await work.more(4);
  process.kill(first.pid, "SIGKILL");
  // Its client learns of the death.
  await Promise.all(calls);
  expect(answers.at(-1)).toMatch(/socket hang up|ECONNRESET/);
  await work.more(4);
  await until(() => stderr().includes("gateway started again"), { what: "the successor" });
  expect(await gatewaysOf(url, token)).toMatchObject([
    { number: 1, state: "ready", restarts: 1 },
    { number: 2, state: "ready", restarts: 0, pid: second.pid },
  ]);
  // A SIGTERM for one of them gives it a successor, too.
  process.kill(second.pid, "SIGTERM");
  await until(() => !isAlive(second.pid), { what: "the end of the old one" });
  await work.more(4);
  await work.finish();
  expect(work.failures).toEqual([]);

  const pids = (await gatewaysOf(url, token)).map(({ pid }) => pid);
  const redis = Number(/"pid":(\d+),"socket"/.exec(stderr())?.[1]);
  expect(isAlive(redis)).toBe(true);
  const parked = api.lease("idle", { wait_seconds: 60 }).catch(() => null);
  await until(async () => (await api.call("GET", "/v1/agents/idle")).body.presence.pollers === 1);
  child.kill("SIGKILL");
  await parked;
  await until(() => ![...pids, redis].some(isAlive), { what: "the end of all processes" });
  // The port and the data are free.
  const again = await serveIn(dir, { ERRAND_PORT: new URL(url).port });
  expect((await request(again.url, "GET", "/readyz", { token: null })).status).toBe(200);
}, 300_000);

/** As clients do, gives up a call that gets no answer. */
async function inTime<T>(call: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("no answer")), PATIENCE_MS);
  });
  return Promise.race([call, late]).finally(() => clearTimeout(timer));
}

function healthOnNewConnection(url: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = sendRequest(`${url}/healthz`, { agent: false }, (answer) => {
      answer.resume().on("end", () => resolve(answer.statusCode ?? 0));
    });
    sent.on("error", reject).end();
  });
}

/** `tools/list` in the session, on a connection of its own. */
function onNewConnection(url: string, token: string, session: Record<string, string>): Promise<number> {
  const headers = {
    ...session,
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2025-11-25",
  };
  return new Promise((resolve, reject) => {
    const sent = sendRequest(
      `${url}/mcp`,
      { method: "POST", headers, agent: new Agent({ keepAlive: false }) },
      (answer) => {
        answer.resume().on("end", () => resolve(answer.statusCode ?? 0));
      },
    );
    sent.on("error", reject);
    sent.end(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }));
  });
}
