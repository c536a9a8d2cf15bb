/** `errand logs` against a real gateway. */
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { eventSchema } from "../../../src/schema/event.ts";
import { OPERATOR } from "../../support/broker.ts";
import { outage } from "../../support/outage.ts";
import { until } from "../../support/until.ts";
import { lines, setup } from "../broker/cli.ts";
import { start as startHere } from "../fake-host.ts";

const LONG = "I changed my mind about it, and shall do it by hand as soon as there is time, next week";

/** The lines without times; the gap stays. */
const words = (stdout: string): string[] =>
  stdout
    .trim()
    .split("\n")
    .filter((line) => !/^\d{4}-\d\d-\d\d \(.+\)$/.test(line))
    .map((line) => line.replace(/^\d\d:\d\d:\d\d +/, "").replaceAll(/\d\d:\d\d:\d\d/g, "TIME"));

test("tells the story of a delegation in words, in order", async () => {
  const { api, run, gateway, clock } = await setup();
  await api.agent("scout");
  const lease = async () => {
    const { body } = await api.lease("scout", { worker_id: "w1" });
    return String(body.leases[0].lease_id);
  };
  const pass = async (ms: number) => {
    clock.offset_ms += ms;
    await gateway.sweep.tick();
  };
  const parts = [{ text: "dig\u001b[31m here" }, { raw: "AAAA", filename: "map.png" }];
  const { id } = (await api.delegate("scout", { task: undefined, message: { parts } })).body;
  await pass(125_000);
  const first = await lease();
  await api.heartbeat(first, { progress: { current_step: "index", message: "reading", done: 3, total: 10 } });
  await api.message(id, "and there");
  await api.call("POST", `/v1/leases/${first}/artifacts`, {
    artifact: { artifactId: "a", name: "out.txt", parts: [{ text: "x" }] },
  });
  await api.interrupt(first, {
    text: "may I?",
    action: { name: "deploy", arguments: { host: "db1" } },
    edit: true,
  });
  const { interrupt } = (await api.get(id)).body;
  await api.answer(id, interrupt.id, { decision: "approve", text: "but gently", data: { host: "db9" } });
  const failing = { state: "failed", text: undefined };
  await api.reply(await lease(), {
    ...failing,
    error: { code: "no_spade", message: "None.", retryable: true },
  });
  await pass(60_000);
  await api.release(await lease(), { reason: "going home" });
  await lease();
  await pass(300_000);
  await pass(60_000);
  await api.reply(await lease(), { text: "done\nindeed" });

  const { code, stdout, stderr } = await run(["logs", id]);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(/^\d{4}-\d\d-\d\d \((?:UTC|[+-]\d\d:\d\d)\)\n\d\d:\d\d:\d\d /);
  const gap = "(?:\\d+ (?:s|min) later  )?";
  const told = words(stdout).map((line) => line.replace(new RegExp(`^${gap}`), ""));
  expect(told).toEqual([
    "operator delegated it to scout, with map.png (3 bytes):…",
    "picked up by w1",
    "progress: index: 3/10 reading",
    'follow-up by operator: "and there"',
    expect.stringMatching(/^sent the artifact (?:out\.txt \(1 bytes\)|a)$/),
    'scout asked: "may I?" [deploy {"host":"db1"}]',
    'operator answered: approve, host "db1" → "db9", "but ge…',
    "picked up by w1",
    "the attempt failed; again not before TIME: no_spade: None.",
    "picked up by w1, attempt 2",
    "given back by the worker: going home",
    "picked up by w1, attempt 2",
    "worker gave no sign of life; again not before TIME",
    "picked up by w1, attempt 3",
    expect.stringMatching(/^completed after 9 min \d+ s in attempt 3: "done indeed"$/),
  ]);
  expect(words(stdout)[1]).toMatch(/^2 min later/);
  // In a pipe, a reason is never cut.
  for (const line of stdout.split("\n"))
    if (!line.includes("no_spade")) expect(line.length).toBeLessThanOrEqual(80);
  const wide = (await run(["logs", id, "--wide"])).stdout;
  expect(wide).toContain('with map.png (3 bytes): "dig here"\n');
  const { id: canceled } = (await api.delegate("scout")).body;
  await api.cancel(canceled, { reason: LONG });
  expect(words((await run(["logs", canceled])).stdout).at(-1)).toMatch(
    new RegExp(`^canceled after .*: Canceled by operator: ${LONG}$`),
  );
});

test("names the broker for its outage, and says that a worker is back", async () => {
  const { api, run, gateway, clock, redis } = await setup();
  await api.agent("scout", { backoff: { initial_ms: 60_000 } });
  const { id } = (await api.delegate("scout")).body;
  const { lease_id } = (await api.lease("scout", { worker_id: "w1" })).body.leases[0];
  await gateway.sweep.tick();
  clock.offset_ms += 61_000;
  await gateway.sweep.tick();
  expect((await run(["get", id])).stdout).toContain("the worker gave no sign of life");
  await api.heartbeat(lease_id);
  expect((await run(["get", id])).stdout).not.toContain("no sign of life");
  await outage({ redis, clock }, 600);
  await gateway.sweep.tick();
  await api.reply(lease_id);
  expect(
    words((await run(["logs", id, "--wide"])).stdout).map((line) => line.replace(/^\d+ \S+ later +/, "")),
  ).toEqual([
    'operator delegated it to scout: "do it"',
    "picked up by w1",
    expect.stringMatching(/^worker gave no sign of life; again not before TIME$/),
    "w1 is back and goes on",
    "the broker was away; the worker has time until TIME",
    expect.stringMatching(/^completed after 11 min/),
  ]);
});

test("has all events of many, and with --follow those to come, until the end", async () => {
  const { api, run, url, clock } = await setup();
  await api.agent("scout");
  const { id } = (await api.delegate("scout")).body;
  const { lease_id } = (await api.lease("scout")).body.leases[0];
  const steps = 110;
  for (let done = 1; done <= steps; done += 1) {
    // Beyond a pace, progress is dropped.
    clock.offset_ms += 1_000;
    await api.heartbeat(lease_id, { progress: { done, total: steps } });
  }
  const json = lines(eventSchema, (await run(["logs", id, "--json"])).stdout);
  expect(json.map(({ seq }) => seq)).toEqual(Array.from({ length: steps + 2 }, (_, n) => n + 1));

  const following = startHere(["logs", id, "-f"], { env: { url, token: "operator-token-for-tests" } });
  await until(() => following.stdout().includes(`progress: ${steps}/${steps}`), {
    what: "the stored events",
  });
  await api.reply(lease_id);
  expect(await following.done).toBe(0);
  expect(words(following.stdout())).toHaveLength(steps + 3);
  expect(words(following.stdout()).at(-1)).toMatch(/completed after/);
});

test("on a narrow terminal the words have the room, and alarms of the status are whole", async () => {
  const { api, url } = await setup();
  await api.agent("archivist");
  const { id } = (await api.delegate("archivist", { task: "Store it" })).body;
  const narrow = async (argv: string[]) => {
    let shown = "";
    const stdout = Object.assign(new PassThrough(), { columns: 30 });
    stdout.on("data", (part) => {
      shown += part;
    });
    const childEnv = { NO_COLOR: "1" };
    await startHere(argv, { env: { url, token: OPERATOR }, childEnv, stdout, tty: { stdout: true } }).done;
    return shown;
  };
  expect(await narrow(["logs", id])).toMatch(/^\d\d:\d\d:\d\d {2}operator delegated …$/m);
  const status = await narrow(["status"]);
  expect(status).toMatch(/^id +brk_\w{26}$/m);
  expect(status).toMatch(/^ {11}archivist has no\n {11}worker: 1\n {11}delegation waits$/m);
});
