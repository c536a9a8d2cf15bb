import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { until } from "../support/until.ts";

const AGENTS = 50;
const DELEGATIONS = 1_000;
const WORKERS = 10;
const KILLS = 20;

test("1 000 delegations to 50 agents while 20 worker processes are killed: all end, each once", async () => {
  const { url, redis } = await startBroker({ sweepEveryMs: 100 });
  const api = client(url);
  const names = Array.from({ length: AGENTS }, (_, n) => `agent-${n}`);
  const spec = { limits: { max_attempts: 20 }, backoff: { initial_ms: 50, max_ms: 200 } };
  await Promise.all(names.map((name) => api.agent(name, spec)));

  const living = new Set<ChildProcess>();
  const worker = (n: number) => {
    const mine = names.filter((_, index) => index % WORKERS === n % WORKERS).join(",");
    const script = fileURLToPath(new URL("../support/child-worker.mjs", import.meta.url));
    const child = fork(script, [url, OPERATOR, mine], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    living.add(child);
    return child;
  };
  onTestFinished(() => {
    for (const child of living) child.kill("SIGKILL");
  });
  const workers = Array.from({ length: WORKERS }, (_, n) => worker(n));

  const working = async () => {
    const sizes = await Promise.all(names.map((name) => redis.zcard(`{errand:0}:live:${name}:working`)));
    return sizes.reduce((sum, size) => sum + size, 0);
  };
  const ids: string[] = [];
  let killed = 0;
  for (let n = 0; n < DELEGATIONS; n += 1) {
    const { status, body } = await api.delegate(names[n % AGENTS] ?? "", { task: `task ${n}` });
    expect(status).toBe(202);
    ids.push(body.id);
    if (n % (DELEGATIONS / KILLS) === DELEGATIONS / KILLS - 1) {
      // Killed while leases are held, so that some leases lose their worker.
      await until(async () => (await working()) > 0 || (await allDone(api, ids)));
      const index = killed % WORKERS;
      workers[index]?.kill("SIGKILL");
      workers[index] = worker(index);
      killed += 1;
    }
  }
  expect(killed).toBe(KILLS);
  await until(() => allDone(api, ids), { timeoutMs: 200_000, what: "every delegation's end" });

  let lapsed = 0;
  for (const [n, id] of ids.entries()) {
    const events = await eventsOf(api, id);
    checkHistory(events, "finished");
    expect(events.at(-1)).toMatchObject({ type: "DELEGATION_COMPLETE", response_preview: `task ${n}` });
    lapsed += events.filter((event) => event.status === "lease_expired").length;
  }
  expect(lapsed).toBeGreaterThan(0);
}, 300_000);

async function allDone(api: ReturnType<typeof client>, ids: readonly string[]): Promise<boolean> {
  const { agents } = (await api.call("GET", "/v1/agents")).body;
  const live = agents.map(({ counts }: { counts: Record<string, number> }) =>
    Object.values(counts).reduce((sum, count) => sum + count, 0),
  );
  return ids.length > 0 && live.every((count: number) => count === 0);
}
