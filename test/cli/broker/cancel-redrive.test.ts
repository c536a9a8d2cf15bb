/** `errand cancel` and `errand redrive`, of one delegation and of many, against a real gateway. */

import { describe, expect, test } from "vitest";
import { delegationSchema } from "../../../src/schema/delegation.ts";
import { problemSchema } from "../../../src/schema/problem.ts";
import { as } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { run as runHere } from "../fake-host.ts";
import { lines, problemIn, setup } from "./cli.ts";

type Setting = Awaited<ReturnType<typeof setup>>;

/** Failed delegations of an agent, oldest first. */
async function failed({ api }: Setting, agent: string, ...codes: string[]): Promise<string[]> {
  await api.agent(agent);
  const ids: string[] = [];
  for (const code of codes) {
    ids.push((await api.delegate(agent, { task: code })).body.id);
    const [lease] = (await api.lease(agent)).body.leases;
    await api.reply(lease.lease_id, { state: "failed", error: { code, message: "no" } });
  }
  return ids;
}

describe("cancel", () => {
  test("prints the new state, or why it cannot cancel", async () => {
    const { run, api } = await setup();
    await api.agent("scout");
    const [done, working] = [(await api.delegate("scout")).body.id, (await api.delegate("scout")).body.id];
    const [lease] = (await api.lease("scout", { max: 2 })).body.leases;
    expect(lease.delegation.id).toBe(done);
    await api.reply(lease.lease_id);
    const result = await run(["cancel", working, "--reason", "no longer wanted"]);
    expect(result).toEqual({ code: 0, stdout: `canceled ${working}\n`, stderr: "" });
    expect((await api.get(working)).body.error.message).toContain("no longer wanted");
    const again = await run(["cancel", working, "--json"]);
    expect(lines(delegationSchema, again.stdout)).toMatchObject([{ state: "canceled" }]);
    const late = await run(["cancel", done]);
    expect([late.code, late.stdout]).toEqual([64, ""]);
    expect(late.stderr).toContain(`'errand get ${done}'`);
  });

  test("cancels the children, too, but not with --no-cascade", async () => {
    const { run, api } = await setup();
    await api.agent("scout");
    const family = async () => {
      const parent = String((await api.delegate("scout")).body.id);
      return { parent, child: String((await api.delegate("scout", { parent_id: parent })).body.id) };
    };
    const left = await family();
    expect((await run(["cancel", left.parent, "--no-cascade"])).code).toBe(0);
    expect((await api.get(left.child)).body.state).toBe("submitted");
    const taken = await family();
    expect((await run(["cancel", taken.parent])).code).toBe(0);
    await until(async () => (await api.get(taken.child)).body.state === "canceled");
  });
});

test("cancel of many cancels one agent's delegations and no others", async () => {
  const { api, run } = await setup();
  for (const name of ["scout", "other"]) await api.agent(name);
  const ids: string[] = [];
  for (const agent of ["scout", "scout", "scout", "other"]) ids.push((await api.delegate(agent)).body.id);
  const before = (await api.get(ids[1] ?? "")).body.created_at;
  const which = ["cancel", "--target", "scout"];
  expect(await run([...which, "--before", before, "--all"])).toEqual({
    code: 0,
    stdout: `canceled ${ids[0]}\n`,
    stderr: "errand: 1 canceled.\n",
  });
  const json = await run([...which, "--all", "--json"]);
  expect(lines(delegationSchema, json.stdout)).toMatchObject([
    { id: ids[2], state: "canceled" },
    { id: ids[1], state: "canceled" },
  ]);
  expect(await run([...which, "--all"])).toEqual({ code: 0, stdout: "", stderr: "errand: 0 canceled.\n" });
  expect((await api.get(ids[3] ?? "")).body.state).toBe("submitted");
});

describe("redrive", () => {
  test("delegates one again, as get shows; a repeat returns the same id", async () => {
    const setting = await setup();
    const { api, run } = setting;
    const [old = ""] = await failed(setting, "scout", "broken");
    const made = await run(["redrive", old]);
    expect([made.code, made.stderr]).toEqual([0, ""]);
    const id = made.stdout.trim();
    expect((await api.get(id)).body).toMatchObject({
      state: "submitted",
      redrive_of: old,
      task_preview: "broken",
    });
    expect((await run(["get", id])).stdout).toMatch(new RegExp(`^redrive of +${old}$`, "m"));
    expect((await run(["get", old])).stdout).toMatch(new RegExp(`^redriven as +${id}$`, "m"));
    const again = await run(["redrive", old, "--json"]);
    expect(lines(delegationSchema, again.stdout)).toMatchObject([{ id, redrive_of: old }]);
    const live = await run(["redrive", id, "--json"]);
    expect([live.code, problemIn(live.stderr).code]).toEqual([64, "wrong_state"]);
    await api.cancel(id);
    const canceled = await run(["redrive", id]);
    expect([canceled.code, canceled.stderr]).toEqual([
      64,
      `errand: Delegation ${id} is canceled; only a failed one can be redriven. To do its task again, run: errand delegate scout 'broken'\n`,
    ]);
  });

  test("of many: by error code, time and number", async () => {
    const setting = await setup();
    const { api, run } = setting;
    const codes = ["lost", "other", "lost", "lost"];
    const ids = await failed(setting, "scout", ...codes);
    const before = (await api.get(ids[3] ?? "")).body.created_at;
    const which = ["redrive", "--target", "scout", "--error-code", "lost"];
    const origin = async (stdout: string) => {
      const made = stdout.split("\n").slice(0, -1);
      return Promise.all(made.map(async (id) => (await api.get(id)).body.redrive_of));
    };
    const one = await run([...which, "--limit", "1"]);
    expect([one.code, one.stderr]).toEqual([0, "errand: 1 redriven.\n"]);
    expect(await origin(one.stdout)).toEqual([ids[3]]);
    const older = await run([...which, "--before", before, "--all"]);
    expect(await origin(older.stdout)).toEqual([ids[2], ids[0]]);
    const json = await run(["redrive", "--target", "scout", "--error-code", "other", "--all", "--json"]);
    expect(json.stderr).toBe("");
    expect(lines(delegationSchema, json.stdout)).toMatchObject([{ redrive_of: ids[1], state: "submitted" }]);
    const { token } = await as(setting.url, "caller:bob");
    const forbidden = await run(["redrive", "--target", "scout", "--all"], { token });
    expect([forbidden.code, forbidden.stdout]).toEqual([77, ""]);
  });

  test("and list name the error codes that exist if none matches", async () => {
    const setting = await setup();
    const { run } = setting;
    await failed(setting, "scout", "lost", "command_failed");
    const said =
      "errand: none ended with comand_failed; errors of the newest failures: command_failed, lost.\n";
    const which = ["--target", "scout", "--error-code", "comand_failed", "--all"];
    const listed = await run(["list", ...which]);
    expect([listed.code, listed.stderr]).toEqual([0, said]);
    const redriven = await run(["redrive", ...which]);
    expect([redriven.code, redriven.stderr]).toEqual([0, `errand: 0 redriven.\n${said}`]);
    expect((await run(["list", ...which, "--json"])).stderr).toBe("");
  });

  test("is suggested when a wait ends because all attempts failed", async () => {
    const { api, run, gateway, clock } = await setup();
    await api.agent("scout", { limits: { max_attempts: 1 } });
    const { id } = (await api.delegate("scout")).body;
    await api.lease("scout", { lease_seconds: 1 });
    clock.offset_ms += 5_000;
    await gateway.sweep.tick();
    const ended = await run(["get", id, "--wait", "--reply"]);
    expect(ended.code).toBe(1);
    expect(ended.stderr).toContain(`Check the agent's workers, then run 'errand redrive ${id}'.`);
  });
});

test("several ids: a refusal does not stop the others, and the most serious one sets the exit code", async () => {
  const { api, run } = await setup();
  await api.agent("scout");
  const make = async () => String((await api.delegate("scout")).body.id);
  const [first, second, third] = [await make(), await make(), await make()];
  const unknown = `${first.slice(0, -4)}0000`;
  await api.reply((await api.lease("scout")).body.leases[0].lease_id);
  const canceled = await run(["cancel", first, second, third, second]);
  expect([canceled.code, canceled.stdout]).toEqual([64, `canceled ${second}\ncanceled ${third}\n`]);
  expect(canceled.stderr).toMatch(new RegExp(`^errand: .*${first}.*\nerrand: 1 of 3 were refused\\.\n$`));
  const json = await run(["redrive", unknown, second, "--json"]);
  expect([json.code, json.stdout]).toEqual([66, ""]);
  expect(lines(problemSchema, json.stderr).map(({ code, delegation_id }) => [code, delegation_id])).toEqual([
    ["delegation_not_found", unknown],
    ["wrong_state", second],
  ]);
  const erased = await run(["delete", unknown, first, second]);
  expect([erased.code, erased.stdout]).toEqual([66, `erased ${first}\nerased ${second}\n`]);
  // One id: the error as it is, with its id.
  const one = await run(["cancel", unknown]);
  expect([one.code, one.stderr.match(/\n/g)?.length]).toEqual([66, 1]);
});

test("bulk options must be complete", async () => {
  for (const [argv, said] of [
    [["redrive"], "no delegation id given"],
    [["redrive", "dlg_1", "--target", "scout"], "either ids or --target"],
    [["redrive", "--target", "scout"], "either --limit or --all"],
    [["redrive", "--target", "scout", "--all", "--limit", "3"], "either --limit or --all"],
    [["redrive", "--all"], "require --target"],
    [["cancel", "dlg_1", "--limit", "3"], "require --target"],
    [
      ["cancel", "--target", "scout", "--all", "--reason", "x"],
      "--reason, --cascade and --no-cascade require ids",
    ],
    [["cancel", "--target", "scout", "--before", "tomorrow", "--all"], "--before <instant>"],
  ] as const) {
    const { code, stderr } = await runHere([...argv]);
    expect([code, stderr]).toEqual([64, expect.stringContaining(said)]);
  }
});
