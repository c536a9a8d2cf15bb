/** `errand redrive`, `cancel`, `list --tree`, `delegate --callback` and `--batch` against a real gateway. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { agentSchema } from "../../../src/schema/agent.ts";
import { delegationSchema } from "../../../src/schema/delegation.ts";
import { problemSchema } from "../../../src/schema/problem.ts";
import { as, client } from "../../support/broker.ts";
import { startReceiver } from "../../support/receiver.ts";
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
    const again = await run(["redrive", old, "--json"]);
    expect(lines(delegationSchema, again.stdout)).toMatchObject([{ id, redrive_of: old }]);
    const live = await run(["redrive", id, "--json"]);
    expect([live.code, problemIn(live.stderr).code]).toEqual([64, "wrong_state"]);
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

test("bulk options must be complete", async () => {
  for (const [argv, said] of [
    [["redrive"], "no delegation id given"],
    [["redrive", "dlg_1", "--target", "scout"], "either one id or --target"],
    [["redrive", "--target", "scout"], "either --limit or --all"],
    [["redrive", "--target", "scout", "--all", "--limit", "3"], "either --limit or --all"],
    [["redrive", "--all"], "require --target"],
    [["cancel", "dlg_1", "--limit", "3"], "require --target"],
    [["cancel", "--target", "scout", "--all", "--reason", "x"], "--reason and --no-cascade require an id"],
    [["cancel", "--target", "scout", "--before", "yesterday", "--all"], "--before <instant>"],
    [["list", "--tree", "dlg_1", "--state", "failed"], "cannot be combined with filters"],
  ] as const) {
    const { code, stderr } = await runHere([...argv]);
    expect([code, stderr]).toEqual([64, expect.stringContaining(said)]);
  }
});

test("a paused agent gets no work until it is resumed", async () => {
  const { api, run, url } = await setup();
  await api.agent("scout");
  const { id } = (await api.delegate("scout")).body;
  expect(await run(["agent", "pause", "scout"])).toEqual({ code: 0, stdout: "paused scout\n", stderr: "" });
  expect((await run(["agent", "get", "scout"])).stdout).toContain("'errand agent resume scout'");
  expect((await api.lease("scout", { wait_seconds: 0 })).body.leases).toEqual([]);
  const resumed = await run(["agent", "resume", "scout", "--json"]);
  expect(lines(agentSchema, resumed.stdout)).toMatchObject([{ name: "scout", paused: false }]);
  expect((await api.lease("scout")).body.leases).toMatchObject([{ delegation: { id } }]);
  const { token } = await as(url, "caller:bob");
  expect((await run(["agent", "pause", "scout"], { token })).code).toBe(77);
});

describe("a tree", () => {
  /** root: a, b; a: c, e; e: d. */
  async function grown({ api, run, url }: Setting) {
    for (const name of ["lead", "a", "b", "c", "d", "e"]) await api.agent(name);
    const caller = await as(url, "caller:bob");
    const root = (await client(url, caller.token).delegate("lead", { task: "all of it" })).body.id;
    const under = async (parent: string, agent: string) => {
      const made = await run(["delegate", agent, `part ${agent}`, "--parent", parent]);
      expect([made.code, made.stderr]).toEqual([0, ""]);
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
    const state = (text: string) => text.padEnd("input_required".length);
    expect(await run(["list", "--tree", root])).toEqual({
      code: 0,
      stderr: "",
      stdout: `${[
        `${root}  ${state("submitted")}  lead  all of it`,
        `├─ ${a}  ${state("submitted")}  a  part a`,
        `│  ├─ ${c}  ${state("submitted")}  c  part c`,
        `│  └─ ${e}  ${state("submitted")}  e  part e`,
        `│     └─ ${d}  ${state("submitted")}  d  part d`,
        `└─ ${b}  ${state("canceled")}  b  part b`,
      ].join("\n")}\n`,
    });
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
    const unknown = await run(["list", "--tree", "dlg_0_00000000000000000000000000"]);
    expect(unknown.code).toBe(1);
  });

  test("of each listed delegation, none twice", async () => {
    const setting = await setup();
    const { run } = setting;
    const { root, a, b, c, d, e } = await grown(setting);
    const alone = (await run(["delegate", "lead", "alone"])).stdout.trim();
    const ids = (stdout: string) => [...stdout.matchAll(/dlg_\w+/g)].map(([id]) => id);
    expect(ids((await run(["list", "--tree"])).stdout)).toEqual([root, a, c, e, d, b, alone]);
    expect(ids((await run(["list", "--tree", "--target", "a"])).stdout)).toEqual([a, c, e, d]);
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
    const some = await run(["list", "--tree", "--limit", "1"]);
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
    const wrong = await run(["delegate", "b", "late", "--parent", "root"]);
    expect(wrong.stderr).toContain("not a delegation id");
  });
});

test("delegate --callback: the end is POSTed to the URL, signed", async () => {
  const { api, run } = await setup({ callbackAllow: ["127.0.0.1"] });
  await api.agent("scout");
  const { url, received } = await startReceiver();
  const secrets = [1, 2].map((byte) => `whsec_${Buffer.alloc(32, byte).toString("base64")}`);
  const how = ["--callback", url, "--callback-secret", ...secrets, "--callback-token", "let-me-in"];
  const made = await run(["delegate", "scout", "x", ...how]);
  expect(made).toMatchObject({ code: 0, stderr: "" });
  const [lease] = (await api.lease("scout")).body.leases;
  await api.reply(lease.lease_id);
  await until(() => received.length === 1, { what: "the callback" });
  const [{ headers, body } = { headers: {}, body: "" }] = received;
  const names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
  const signed = Object.fromEntries(names.map((name) => [name, String(headers[name])]));
  for (const secret of secrets) {
    expect(new Webhook(secret).verify(body, signed)).toMatchObject({
      type: "DELEGATION_COMPLETE",
      delegation_id: made.stdout.trim(),
    });
  }
  expect(headers.authorization).toBe("Bearer let-me-in");
  for (const [args, said] of [
    [["--callback", "ftp://x"], "--callback <url>"],
    [["--callback-token", "t"], "require --callback"],
    [["--callback", url, "--callback-secret", "short"], "--callback-secret: expected whsec_"],
  ] as const) {
    const { code, stderr } = await runHere(["delegate", "scout", "x", ...args]);
    expect([code, stderr]).toEqual([64, expect.stringContaining(said)]);
    expect(stderr).not.toContain("short");
  }
});

describe("delegate --batch", () => {
  const one = z.strictObject({ line: z.int(), delegation: delegationSchema });
  const other = z.strictObject({ line: z.int(), error: problemSchema });

  test("handles each line on its own; the most serious error sets the exit code", async () => {
    const { api, run, dir } = await setup();
    await api.agent("scout");
    await api.agent("other");
    const batch = [
      { task: "one" },
      { target: "other", task: "two", priority: 1 },
      { target: "nobody", task: "three" },
      { message: { parts: [{ data: 4 }] }, idempotency_key: "mine" },
      { task: "five", prioriti: 1 },
    ].map((line) => JSON.stringify(line));
    writeFileSync(
      join(dir, "tasks.jsonl"),
      `${[...batch.slice(0, 2), "", ...batch.slice(2), "{"].join("\n")}\n`,
    );
    const which = ["delegate", "scout", "--batch", "tasks.jsonl", "--priority", "7"];
    const mixed = await run(which);
    expect(mixed.code).toBe(78);
    const ids = mixed.stdout.split("\n").slice(0, -1);
    const made = await Promise.all(ids.map(async (id) => (await api.get(id)).body));
    expect(made).toMatchObject([
      { target: "scout", task_preview: "one", priority: 7 },
      { target: "other", task_preview: "two", priority: 1 },
      { target: "scout", message: { parts: [{ data: 4 }] }, priority: 7 },
    ]);
    const said = mixed.stderr.split("\n");
    expect(said[0]).toMatch(/^errand: line 4: .*nobody.* Check the name with 'errand agent list'/);
    expect(said[1]).toMatch(/^errand: line 6: .*prioriti.* Correct the line/);
    expect(said[2]).toMatch(/^errand: line 7: not valid JSON/);
    expect(said.slice(3)).toEqual(["errand: 3 of 6 lines were refused.", ""]);

    const json = await run([...which, "--json"]);
    expect([json.code, json.stderr]).toEqual([78, ""]);
    const outcomes = lines(z.union([one, other]), json.stdout);
    expect(outcomes.map(({ line }) => line)).toEqual([1, 2, 4, 5, 6, 7]);
    expect(outcomes.map((line) => ("error" in line ? line.error.code : "ok"))).toEqual([
      "ok",
      "ok",
      "agent_unknown",
      "ok",
      "invalid_request",
      "invalid_json",
    ]);
    expect(outcomes[3]).toMatchObject({ delegation: { id: ids[2] } });
  });

  test("from stdin, more than fits one request; the same key returns the same delegations", async () => {
    const { api, run } = await setup();
    await api.agent("scout");
    const input = Array.from({ length: 250 }, (_, n) =>
      JSON.stringify({ target: "scout", task: `t${n}` }),
    ).join("\n");
    const args = ["delegate", "--batch", "-", "--idempotency-key", "nightly"];
    const first = await run(args, { input });
    expect([first.code, first.stderr]).toEqual([0, ""]);
    expect(new Set(first.stdout.trim().split("\n")).size).toBe(250);
    expect((await run(args, { input })).stdout).toBe(first.stdout);
    expect((await api.call("GET", "/v1/agents/scout")).body.counts.waiting).toBe(250);
  });

  test("exits with 75 if the broker is unavailable; with a task or a wait it is a usage error", async () => {
    const { run, gateway } = await setup();
    await gateway.close();
    const away = await run(["delegate", "scout", "--batch", "-"], { input: '{"task": "x"}' });
    expect([away.code, away.stdout]).toEqual([75, ""]);
    for (const more of [["x"], ["--wait"], ["--file", "f"]]) {
      const { code, stderr } = await runHere(["delegate", "scout", "--batch", "-", ...more], { stdin: "" });
      expect([code, stderr]).toEqual([64, expect.stringContaining("--batch cannot be combined with a task")]);
    }
    const none = await runHere(["delegate"]);
    expect(none.stderr).toContain("missing required argument 'agent'");
  });
});
