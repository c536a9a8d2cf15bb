/** What the commands show of work that waits for its children, against a real gateway. */
import { expect, test } from "vitest";
import { as, OPERATOR } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { start } from "../fake-host.ts";
import { setup } from "./cli.ts";

async function parked() {
  const broker = await setup();
  const { api, url } = broker;
  await api.agent("planner");
  await api.agent("scout");
  const planner = await as(url, "agent:planner");
  const { id } = (await api.delegate("planner", { task: "plan" })).body;
  const [{ lease_id }] = (await planner.lease("planner", { wait_seconds: 5 })).body.leases;
  const child = (await planner.delegate("scout", { parent_id: id })).body.id;
  await planner.await(lease_id, [child], { time_limit_seconds: 600 });
  return { ...broker, id, child };
}

test("a list, its filter, one delegation and the counts say that it waits, and for what", async () => {
  const { run, id } = await parked();
  for (const state of ["waits", "awaiting_children"]) {
    const { stdout } = await run(["list", "--state", state, "-o", "state,task"]);
    expect(stdout).toBe("STATE  TASK\nwaits  plan\n");
  }
  expect((await run(["list", "--state", "wats"])).stderr).toContain("Did you mean waits?");
  const { stdout } = await run(["get", id]);
  expect(stdout).toMatch(/^state +waits$/m);
  expect(stdout).toMatch(/^why +Waiting for a part of it to end, at most 10 min\.$/m);
  expect(stdout).toContain(`'errand list --tree ${id}'`);
  const { why, state } = JSON.parse((await run(["get", id, "--json"])).stdout);
  expect({ why, state }).toEqual({
    why: "Waiting for a part of it to end, at most 10 min.",
    state: "awaiting_children",
  });
  expect((await run(["status"])).stdout).toMatch(/^work +waiting 1, awaiting 1; oldest /m);
  expect((await run(["top", "--once"])).stdout).toMatch(/, 0 asking, 1 awaiting$/m);
  expect((await run(["agent", "list", "-o", "name,awaiting"])).stdout).toBe(
    "NAME     AWAITING\nplanner  1\nscout    0\n",
  );
});

test("why it waits names a part that asks a question", async () => {
  const { run, url, api, id, child } = await parked();
  const scout = await as(url, "agent:scout");
  const [{ lease_id }] = (await scout.lease("scout", { wait_seconds: 5 })).body.leases;
  await scout.interrupt(lease_id, { text: "Which branch?" });
  const { why } = JSON.parse((await run(["get", id, "--json"])).stdout);
  expect(why).toBe(
    `Waiting for a part of it to end, at most 10 min. Its part ${child} of scout asks agent planner or an approver a question.`,
  );
  expect((await run(["get", id])).stdout.replaceAll(/\s+/g, " ")).toContain(why);
  await api.cancel(child);
});

test("a wait says why, and the story that the time was over", async () => {
  const { run, url, api, id, clock, gateway } = await parked();
  const waiting = start(["get", id, "--wait"], { env: { url, token: OPERATOR } });
  await until(() => waiting.stderr().includes(`${id} waits. Waiting for a part of it to end`), {
    what: "the note",
  });
  clock.offset_ms += 600_500;
  await gateway.sweep.tick();
  const [{ lease_id }] = (await api.lease("planner", { wait_seconds: 5 })).body.leases;
  await api.reply(lease_id);
  expect(await waiting.done).toBe(0);
  expect((await run(["logs", id])).stdout).toContain("no longer waits for its children: the time is over");
  const watched = await run(["watch", id, "--after", "0"]);
  expect(watched.stdout).toContain("waits for a child");
  expect(watched.stdout).toContain("resumed (the time is over)");
});
