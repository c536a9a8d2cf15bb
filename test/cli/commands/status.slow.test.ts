/** `errand status` against a real gateway. */
import { expect, test } from "vitest";
import { as, OPERATOR } from "../../support/broker.ts";
import { startOwnRedis } from "../../support/own-redis.ts";
import { until } from "../../support/until.ts";
import { setup } from "../broker/cli.ts";
import { run as runHere } from "../fake-host.ts";

test("shows the broker, the work and the open questions; a caller sees its own", async () => {
  const { run, api, url } = await setup();
  const empty = await run(["status"]);
  expect(empty).toMatchObject({ code: 0, stderr: "" });
  expect(empty.stdout).toMatch(
    /^broker +http:\S+, version \S+\nid +brk_\w{26}\nstarted +\d+[sm] ago, \d{4}-/,
  );
  expect(empty.stdout).toMatch(/^agents +0: online 0$/m);
  expect(empty.stdout).toMatch(/^work +waiting 0$/m);

  await api.agent("scout");
  await api.agent("busy", { limits: { max_working: 1 } });
  const alice = await as(url, "caller:alice");
  const { id } = (await alice.delegate("scout")).body;
  const { lease_id } = (await api.lease("scout")).body.leases[0];
  await api.interrupt(lease_id, { text: `May I ${"\u001b[31m"}deploy ${"now ".repeat(50)}?` });
  await api.delegate("scout");
  const done = (await (async () => (await api.lease("scout")).body.leases[0])()).lease_id;
  await api.reply(done);
  for (let n = 0; n < 2; n += 1) await api.delegate("busy");

  const { code, stdout } = await run(["status"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^you +operator$/m);
  expect(stdout).toMatch(/^redis +\S+ \S+, embedded, answers in .* used/m);
  expect(stdout).toMatch(/^agents +2: online \d, not online \d \(busy(?:, scout)?\)$/m);
  expect(stdout).toMatch(/^questions +1 for you: 'errand inbox'$/m);
  expect(stdout).toMatch(/^work +waiting 2, asking 1; oldest \d+ s$/m);
  expect(stdout).toMatch(/^last hour +sent 4; ended: completed 1$/m);
  expect(stdout).toMatch(/^last day +sent 4; ended: completed 1$/m);
  expect(stdout).toContain(`${String(id).slice("dlg_0_".length, "dlg_0_".length + 8)}  scout`);
  expect(stdout).toMatch(/ {2}May I deploy now/);
  expect(stdout).toMatch(/^alarms .*\n {11}busy has no worker: 2 delegations wait$/m);
  for (const line of stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
  expect(stdout).not.toContain("\u001b");

  const json = JSON.parse((await run(["status", "--json"])).stdout);
  expect(json).toMatchObject({
    principal: "operator",
    agents: { total: 2, paused: 0, offline_names: expect.arrayContaining(["busy"]) },
    work: { waiting: 2, delayed: 0, working: 0, asking: 1 },
    last_hour: { sent: 4, completed: 1 },
    questions: [{ id }],
    has_more_questions: false,
  });

  const hers = await run(["status"], { token: alice.token });
  expect(hers.stdout).toMatch(/^last hour +sent 1; ended: completed 0$/m);
  expect(hers.stdout).toMatch(/^questions +1 for you/m);
  expect(hers.stdout).not.toMatch(/^redis|the oldest/m);
  const bob = await as(url, "caller:bob");
  const wall = await as(url, "viewer:wall");
  for (const { token } of [bob, wall]) {
    expect((await run(["status"], { token })).stdout).toMatch(/^questions +none for you$/m);
  }
});

test("counts all open questions, shows those that expire first, and names some of the agents offline", async () => {
  const { url, api } = await setup();
  const run = () =>
    runHere(["status"], {
      env: { url, token: OPERATOR },
      command: "./errand",
      childEnv: { NO_COLOR: "1" },
    });
  for (const name of ["a1", "a2", "a3", "a4", "scout"]) await api.agent(name);
  for (let n = 7; n > 0; n -= 1) {
    await api.delegate("scout");
    const { lease_id } = (await api.lease("scout")).body.leases[0];
    await api.interrupt(lease_id, { text: `question ${n}`, expires_in_seconds: 3600 * n });
  }
  const { stdout } = await run();
  expect(stdout).toMatch(/^questions +7 for you: '.\/errand inbox'$/m);
  expect(stdout.match(/question \d/g)).toEqual([1, 2, 3, 4, 5].map((n) => `question ${n}`));
  expect(stdout).toMatch(/^agents +5: online \d, not online \d \(a1, a2, a3, and [12] more\)$/m);
});

test("warns while the broker refuses new work because memory is short", async () => {
  const own = await startOwnRedis("everysec");
  const { run } = await setup({ redis: own.target });
  const used = Number(/^used_memory:(\d+)/m.exec(await own.redis.info("memory"))?.[1]);
  await own.redis.config("SET", "maxmemory", Math.floor(used / 0.8));
  expect((await run(["status"])).stdout).toMatch(/new work is refused: Redis uses \d\d % of its memory/);
});

test("a worker that pauses is an alarm, with its name, reason and time, and shown with its agent", async () => {
  const { run, api } = await setup();
  await api.agent("scout");
  await api.delegate("scout");
  const [{ lease_id }] = (await api.lease("scout")).body.leases;
  const worker = { id: "w1", paused_seconds: 240, reason: "not signed in" };
  await api.release(lease_id, { worker });
  await until(async () => (await api.call("GET", "/v1/agents/scout")).body.presence.paused);
  const shown = async (...args: string[]) => (await run(args)).stdout.replace(/\s+/g, " ");
  expect(await shown("status")).toMatch(/worker w1 of scout is paused: not signed in, next try in [34] min/);
  expect(await shown("agent", "get", "scout")).toMatch(
    /a worker is paused: not signed in, next try in [34] min/,
  );
  expect(await shown("agent", "list")).toContain("online, 1 paused");
  expect(await shown("agent", "workers", "scout")).toMatch(/paused: not signed in, next try in [34] min/);
});

test("much work for an agent whose workers are all busy is an alarm", async () => {
  const { run, api } = await setup();
  await api.agent("builder", { limits: { max_working: 1 } });
  await api.delegate("builder");
  const { lease_id } = (await api.lease("builder")).body.leases[0];
  for (let n = 0; n < 9; n += 1) await api.delegate("builder");
  expect((await run(["status"])).stdout).not.toContain("builder");
  await api.delegate("builder");
  // On a slow machine, its worker would otherwise have been silent for too long.
  await api.heartbeat(lease_id);
  const { alarms } = JSON.parse((await run(["status", "--json"])).stdout);
  expect(alarms.at(-1)).toMatch(
    /^all workers of builder are busy: 10 delegations wait, the oldest for \d+ \w+$/,
  );
});
