/** A command of 40 minutes, with the real worker: the broker is replaced in its middle. Worker and broker share injected time. */
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { timeOf } from "../../src/redis/time.ts";
import { run, start } from "../cli/fake-host.ts";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { outage } from "../support/outage.ts";
import { until } from "../support/until.ts";

const LEASE_SECONDS = 60;
// With the time since its last heartbeat, less than twice the lease: then the worker would stop the command.
const AWAY_SECONDS = 70;
/** As long as a heartbeat is held, so that no other limit of the worker is skipped. */
const STEP_SECONDS = 20;
const LEFT_SECONDS = LEASE_SECONDS / 2;

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date", "performance"],
    // A pause that a timer ends must end also while the test waits for a condition.
    shouldAdvanceTime: true,
  });
  onTestFinished(() => void vi.useRealTimers());
});

test("a command of 40 minutes is one attempt, although the broker is replaced in its middle", async () => {
  const broker = await startBroker();
  const api = client(broker.url);
  await api.agent("builder", { limits: { max_attempts: 1 } });
  const { id } = (await api.delegate("builder")).body;
  const folder = await mkdtemp(join(tmpdir(), "errand-outage-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const [starts, end] = [join(folder, "starts"), join(folder, "end")];
  execFileSync("mkfifo", [end]);
  const setting = { env: { url: broker.url, token: OPERATOR } };
  const worker = start(
    ["work", "--agent", "builder", "--once", "--", "sh", "-c", 'echo started >> "$0"; cat "$1"', starts, end],
    setting,
  );
  const startsOf = () => readFile(starts, "utf8").catch(() => "");
  await until(startsOf);

  let gateway = broker.gateway;
  const leftSeconds = async () => {
    const { lease } = (await api.get(id)).body;
    return (Date.parse(lease.expires_at) - (await timeOf(broker.redis)) - broker.clock.offset_ms) / 1000;
  };
  const pass = async (seconds: number) => {
    for (let passed = 0; passed < seconds; passed += STEP_SECONDS) {
      broker.clock.offset_ms += STEP_SECONDS * 1000;
      vi.advanceTimersByTime(STEP_SECONDS * 1000);
      await until(async () => (await leftSeconds()) > LEFT_SECONDS, { what: "a heartbeat" });
      await gateway.sweep.tick();
    }
  };
  await pass(20 * 60);
  await gateway.close();
  await vi.advanceTimersByTimeAsync(AWAY_SECONDS * 1000);
  await outage(broker, AWAY_SECONDS);
  ({ gateway } = await broker.another({ port: gateway.port }));
  await gateway.sweep.tick();
  await pass(20 * 60 - AWAY_SECONDS);
  await writeFile(end, "built");

  expect(await worker.done, worker.stderr()).toBe(0);
  expect(await startsOf()).toBe("started\n");
  expect((await api.get(id)).body).toMatchObject({ state: "completed", attempt: 1 });
  const events = await eventsOf(api, id);
  checkHistory(events, "finished");
  // On a slow machine the first answer of a poll may come too late: its lease is returned before the command starts.
  expect(events.map(({ status }) => status).slice(-3)).toEqual(["leased", "broker_away", undefined]);
  expect((await run(["logs", id, "--wide"], setting)).stdout).toMatch(
    /picked up by .*\n.* the broker was away; the worker has time until .*\n.* completed after 4\d min/,
  );
}, 180_000);
