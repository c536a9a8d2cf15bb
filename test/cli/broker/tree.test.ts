/** Trees of delegations: `errand delegate --parent` and `errand list --tree`, against a real gateway. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { delegationSchema } from "../../../src/schema/delegation.ts";
import { as, client, OPERATOR } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { run as runHere, start as startHere } from "../fake-host.ts";
import { lines, setup } from "./cli.ts";

type Setting = Awaited<ReturnType<typeof setup>>;

describe("a tree", () => {
  /** root: a, b; a: c, e; e: d. */
  async function grown({ api, run, url }: Setting) {
    for (const name of ["lead", "a", "b", "c", "d", "e"]) await api.agent(name);
    const caller = await as(url, "caller:bob");
    const root = (await client(url, caller.token).delegate("lead", { task: "all of it" })).body.id;
    const under = async (parent: string, agent: string) => {
      const made = await run(["delegate", agent, `part ${agent}`, "--parent", parent]);
      expect(made.code).toBe(0);
      return made.stdout.trim();
    };
    const a = await under(root, "a");
    const b = await under(root, "b");
    const c = await under(a, "c");
    const e = await under(a, "e");
    const d = await under(e, "d");
    return { root, a, b, c, d, e };
  }

  test("is drawn from its root, or printed as objects with their depth", async () => {
    const setting = await setup();
    const { run, api } = setting;
    const { root, a, b, c, d, e } = await grown(setting);
    await api.cancel(b);
    const drawn = await run(["list", "--tree", root, "--wide", "-o", "id,state,target,task"]);
    const id = (text: string) => text.padEnd(`│     └─ ${d}`.length);
    expect(drawn).toEqual({
      code: 0,
      stderr: "",
      stdout: `${[
        `${id("ID")}  STATE      TARGET  TASK`,
        `${id(root)}  submitted  lead    all of it`,
        `${id(`├─ ${a}`)}  submitted  a       part a`,
        `${id(`│  ├─ ${c}`)}  submitted  c       part c`,
        `${id(`│  └─ ${e}`)}  submitted  e       part e`,
        `${id(`│     └─ ${d}`)}  submitted  d       part d`,
        `${id(`└─ ${b}`)}  canceled   b       part b`,
      ].join("\n")}\n`,
    });
    const short = await run(["list", "--tree", root]);
    expect(short.stdout).toMatch(
      new RegExp(`^│     └─ ${d.slice(6, 14)} +submitted +d +operator +\\d+s +part d$`, "m"),
    );
    const json = await run(["list", "--tree", root, "--json"]);
    const shape = delegationSchema.extend({ depth: z.int().min(0) });
    expect(lines(shape, json.stdout).map(({ id, depth }) => [id, depth])).toEqual([
      [root, 0],
      [a, 1],
      [b, 1],
      [c, 2],
      [e, 2],
      [d, 3],
    ]);
    expect((await run(["get", c])).stdout).toMatch(new RegExp(`^parent +${a}$`, "m"));
    const [{ lease_id }] = (await api.lease("c")).body.leases;
    const usage = { input_tokens: 1500, cost: 0.5, currency: "USD", model: "m-1" };
    await api.heartbeat(lease_id, { usage });
    const text = "at least 1,500 tokens in, 0.5 USD";
    expect((await run(["get", c])).stdout).toMatch(new RegExp(`^usage +${text}, m-1$`, "m"));
    const used = await run(["list", "--tree", root, "-o", "id,tokens,cost"]);
    expect(used.stderr).toBe(`errand: The tree of ${root} has used ${text}.\n`);
    expect(used.stdout).toMatch(/ 1500 +0\.5 USD$/m);
    const unknown = await run(["list", "--tree", "dlg_0_00000000000000000000000000"]);
    expect(unknown.code).toBe(66);
  });

  test("ends with what was used of its budget, also by what its caller may not read", async () => {
    const { run, api, url } = await setup();
    for (const name of ["lead", "smith"]) await api.agent(name);
    const alice = await as(url, "caller:alice");
    const lead = await as(url, "agent:lead");
    const smith = await as(url, "agent:smith");
    const budget = { cost: 5, currency: "USD" };
    const { id } = (await alice.delegate("lead", { budget })).body;
    await lead.lease("lead", { wait_seconds: 5 });
    await lead.delegate("smith", { parent_id: id });
    const [{ lease_id }] = (await smith.lease("smith", { wait_seconds: 5 })).body.leases;
    await smith.heartbeat(lease_id, { usage: { cost: 1.5, currency: "USD" } });
    await until(async () => (await api.get(id)).body.budget.used.cost === 1.5);
    const { stderr } = await run(["list", "--tree", id], { token: alice.token });
    expect(stderr).toContain(`Of the budget of ${id}, used with all parts: 1.5 of 5 USD, 2 attempts.`);
  });

  test("has what its caller sees only as a node, without the task", async () => {
    const setting = await setup();
    const { run, url } = setting;
    const { root, a, b, c, d, e } = await grown(setting);
    const { token } = await as(url, "caller:bob");
    const drawn = await run(["list", "--tree", root, "--wide"], { token });
    expect(drawn.code).toBe(0);
    const shown = drawn.stdout.split("\n").map((line) => /(dlg_\w+) .*? {2}(\S.*)$/.exec(line)?.[1]);
    expect(shown.slice(1, -1)).toEqual([root, a, c, e, d, b]);
    expect(drawn.stdout).toContain("all of it");
    expect(drawn.stdout).not.toContain("part ");
    const json = await run(["list", "--tree", root, "--json"], { token });
    const shape = z.looseObject({ id: z.string(), depth: z.int(), readable: z.boolean().optional() });
    expect(lines(shape, json.stdout).map(({ id, depth, readable }) => [id, depth, readable])).toEqual([
      [root, 0, undefined],
      ...[a, b].map((id) => [id, 1, false]),
      ...[c, e].map((id) => [id, 2, false]),
      [d, 3, false],
    ]);
  });

  test("is watched from its root", async () => {
    const setting = await setup();
    const { run, api, url } = setting;
    const { root, a, b } = await grown(setting);
    const env = { url, token: OPERATOR };
    const watched = startHere(["watch", root, "--tree", "--after", "0"], { env });
    await until(() => watched.stdout().split("\n").length > 6);
    await api.cancel(root);
    await until(() => watched.stdout().split("\n").length > 12);
    const short = (id: string) => id.slice(6, 14);
    expect(watched.stdout()).toMatch(new RegExp(`  ${short(a)}  a  submitted$`, "m"));
    expect(watched.stdout()).toMatch(new RegExp(`  ${short(b)}  b  canceled$`, "m"));
    watched.closeStdout();
    for (const wrong of [
      ["watch", "--tree"],
      ["watch", root, "--tree", "--questions"],
    ]) {
      const { code, stderr } = await run(wrong);
      expect([code, stderr]).toEqual([64, expect.stringContaining("--tree goes with the id of a root")]);
    }
  });

  test("of each listed delegation, none twice", async () => {
    const setting = await setup();
    const { run } = setting;
    const { root, a, b, c, d, e } = await grown(setting);
    const alone = (await run(["delegate", "lead", "alone"])).stdout.trim();
    const ids = (stdout: string) => [...stdout.matchAll(/dlg_\w+/g)].map(([id]) => id);
    expect(ids((await run(["list", "--tree", "--wide"])).stdout)).toEqual([root, a, c, e, d, b, alone]);
    expect(ids((await run(["list", "--tree", "--wide", "--target", "a"])).stdout)).toEqual([a, c, e, d]);
    // Even if the list does not find those in between.
    await run(["cancel", a, "--no-cascade"]);
    const live = await run(["list", "--tree", "--state", "submitted", "--json"]);
    expect(lines(z.looseObject({ id: z.string() }), live.stdout).map(({ id }) => id)).toEqual([
      root,
      a,
      b,
      c,
      e,
      d,
      alone,
    ]);
    const some = await run(["list", "--tree", "--wide", "--limit", "1"]);
    expect(ids(some.stdout)).toEqual([alone]);
    expect(some.stderr).toMatch(/more results: --cursor/);
  });

  test("grows only below live delegations", async () => {
    const setting = await setup();
    const { run, api } = setting;
    const { root } = await grown(setting);
    await api.cancel(root);
    const late = await run(["delegate", "b", "late", "--parent", root, "--json"]);
    expect([late.code, late.stdout]).toEqual([64, ""]);
    const wrong = await run(["delegate", "b", "late", "--parent", "Root"]);
    expect(wrong.stderr).toContain("Pass the id of a delegation (dlg_…)");
  });

  test("cannot be filtered", async () => {
    const { code, stderr } = await runHere(["list", "--tree", "dlg_1", "--state", "failed"]);
    expect([code, stderr]).toEqual([64, expect.stringContaining("cannot be combined with filters")]);
  });
});
