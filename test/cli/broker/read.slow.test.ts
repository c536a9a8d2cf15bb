/** `errand get`, `list`, `results` and `watch` against a real gateway. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { shardKeys } from "../../../src/redis/keys.ts";
import { delegationSchema } from "../../../src/schema/delegation.ts";
import { streamEventSchema } from "../../../src/schema/event.ts";
import { as, OPERATOR } from "../../support/broker.ts";
import { freshDir } from "../../support/program.ts";
import { until } from "../../support/until.ts";
import { run as runHere, start as startHere } from "../fake-host.ts";
import { lines, problemIn, setup } from "./cli.ts";

const UNKNOWN = `dlg_0_${"0".repeat(26)}`;
const MAIN = fileURLToPath(new URL("../../../dist/errand.js", import.meta.url));

/** Delegations to `scout` in different states, oldest first. */
async function withEnds() {
  const broker = await setup();
  const { api } = broker;
  await api.agent("scout");
  const taken = async (task: string) => {
    const { id } = (await api.delegate("scout", { task })).body;
    return { id: String(id), lease: String((await api.lease("scout")).body.leases[0].lease_id) };
  };
  const done = await taken("first");
  await api.reply(done.lease, { text: "fine\nindeed" });
  const failed = await taken("second");
  const error = { code: "no_spade", message: "There is none.", retryable: false };
  await api.reply(failed.lease, { state: "failed", text: undefined, error });
  const working = await taken("third");
  await api.heartbeat(working.lease, { progress: { message: "digging", done: 3, total: 10 } });
  return { ...broker, done: done.id, failed: failed.id, working: working.id, lease: working.lease };
}

describe("get", () => {
  test("shows state, progress and end; with --reply only the reply", async () => {
    const { run, api, done, failed, working } = await withEnds();
    const live = await run(["get", working]);
    expect(live).toMatchObject({ code: 0, stderr: "" });
    expect(live.stdout).toMatch(/^state +working$/m);
    expect(live.stdout).toMatch(/^progress +3\/10 digging$/m);
    expect((await run(["get", done])).stdout).toMatch(/\n\nfine\nindeed\n$/);
    expect(await run(["get", done, "--reply"])).toEqual({ code: 0, stdout: "fine\nindeed\n", stderr: "" });
    const bad = await run(["get", failed, "--reply"]);
    expect([bad.code, bad.stdout]).toEqual([1, ""]);
    expect(bad.stderr).toContain("failed: There is none.");
    const json = await run(["get", failed, "--json"]);
    expect(lines(delegationSchema, json.stdout)).toMatchObject([{ id: failed, state: "failed" }]);
    await api.call("POST", "/v1/agents/scout/pause");
    const { id } = (await api.delegate("scout")).body;
    const queued = JSON.parse((await run(["get", id, "--json"])).stdout);
    expect(queued).toMatchObject({ id, why: "scout is paused until the operator resumes it." });
  });

  test("an unknown or invisible delegation exits 66, and a malformed id", async () => {
    const { run, url, done } = await withEnds();
    const { token } = await as(url, "caller:bob");
    for (const result of [await run(["get", UNKNOWN]), await run(["get", done], { token })]) {
      expect([result.code, result.stdout]).toEqual([66, ""]);
      expect(result.stderr).toContain("'errand list'");
    }
    expect((await run(["get", "dlg_1"])).code).toBe(66);
    expect(problemIn((await run(["get", UNKNOWN, "--json"])).stderr).code).toBe("delegation_not_found");
  });
});

describe("list", () => {
  test("prints a table, newest first, or JSON lines", async () => {
    const { run, done, failed, working } = await withEnds();
    const { code, stdout, stderr } = await run(["list"]);
    expect([code, stderr]).toEqual([0, ""]);
    const rows = stdout
      .trimEnd()
      .split("\n")
      .map((line) => line.split(/ {2,}/));
    expect(rows[0]).toEqual(["ID", "STATE", "TARGET", "DELEGATOR", "AGE", "TASK"]);
    const short = (id: string) => id.slice("dlg_0_".length, "dlg_0_".length + 8);
    expect(rows.slice(1).map(([id, state, , , , task]) => [id, state, task])).toEqual([
      [short(working), "working", "third"],
      [short(failed), "failed", "(no_spade) second"],
      [short(done), "completed", "first"],
    ]);
    const [head] = (await run(["list", "--wide"])).stdout.split("\n");
    expect(head?.split(/ {2,}/).slice(0, 6)).toEqual([
      "ID",
      "STATE",
      "TARGET",
      "DELEGATOR",
      "CREATED",
      "UPDATED",
    ]);
    const json = await run(["list", "--json"]);
    expect(lines(delegationSchema, json.stdout).map(({ id }) => id)).toEqual([working, failed, done]);
  });

  test("takes all filters of the broker", async () => {
    const { run, api, url, done, failed, working } = await withEnds();
    const ids = async (...args: string[]) => {
      const { code, stdout } = await run(["list", "--json", ...args]);
      expect(code).toBe(0);
      return lines(delegationSchema, stdout).map(({ id }) => id);
    };
    const context = (await api.get(done)).body.context_id;
    expect(await ids("--state", "working")).toEqual([working]);
    expect(await ids("--error-code", "no_spade", "--target", "scout")).toEqual([failed]);
    expect(await ids("--context", context)).toEqual([done]);
    const { finished_at } = (await api.get(done)).body;
    expect(await ids("--ended-since", finished_at)).toEqual([failed, done]);
    expect(await ids("--delegator", "caller:bob")).toEqual([]);
    const bob = await as(url, "caller:bob");
    const { id } = (await bob.delegate("scout")).body;
    expect(await ids("--delegator", "caller:bob")).toEqual([id]);
  });

  test("continues after a cursor, or through all pages", async () => {
    const { run, done, failed, working } = await withEnds();
    const one = await run(["list", "--limit", "1", "--json"]);
    expect(lines(delegationSchema, one.stdout).map(({ id }) => id)).toEqual([working]);
    const cursor: string = JSON.parse(one.stderr).next_cursor;
    const more = await run(["list", "--cursor", cursor, "--json"]);
    expect(lines(delegationSchema, more.stdout).map(({ id }) => id)).toEqual([failed, done]);
    const result = await run(["list", "--limit", "1"]);
    expect(result.stderr).toBe(`errand: more results: --cursor ${cursor}, or --all.\n`);
    const all = await run(["list", "--all"]);
    expect([all.stdout.trim().split("\n").length, all.stderr]).toEqual([4, ""]);
  });

  test.each([
    [["--state", "wroking"], "submitted, working, input_required"],
    [["--limit", "0"], "from 1 to"],
    [["--all", "--limit", "3"], "either --all or --limit"],
    [["--delegator", "bob"], "a principal is"],
    [["--since", "2026-02-01", "--until", "2026-01-31T23:59:59"], "is before --since"],
    [["--targt", "scout"], "Did you mean --target?"],
  ])("%j is a usage error", async (args, said) => {
    const { run } = await setup();
    const result = await run(["list", ...args]);
    expect([result.code, result.stdout]).toEqual([64, ""]);
    expect(result.stderr).toContain(said);
    expect(result.stderr).toContain("See 'errand list --help'.");
  });
});

describe("results", () => {
  const line = z.union([delegationSchema, z.strictObject({ cursor: z.string() })]);

  test("prints finished delegations, oldest first, and the next cursor", async () => {
    const { run, api, done, failed, working, lease } = await withEnds();
    const { code, stdout, stderr } = await run(["results", "-o", "id,state,target,result", "--wide"]);
    expect(code).toBe(0);
    const rows = stdout
      .trimEnd()
      .split("\n")
      .map((row) => row.split(/ {2,}/));
    expect(rows).toEqual([
      ["ID", "STATE", "TARGET", "RESULT"],
      [done, "completed", "scout", "fine indeed"],
      [failed, "failed", "scout", "(no_spade) There is none."],
    ]);
    const after = /results --after (\S+)\n$/.exec(stderr)?.[1] ?? "";
    const nothing = await run(["results", "--after", after, "--wait", "0.3"]);
    expect([nothing.code, nothing.stdout]).toEqual([124, ""]);
    const json = await run(["results", "--after", after, "--wait", "0.3", "--json"]);
    expect(lines(line, json.stdout)).toEqual([{ cursor: after }]);
    expect(problemIn(json.stderr)).toMatchObject({ category: "TIMEOUT", details: { cursor: after } });

    const waiting = run(["results", "--after", after, "--wait", "15", "--json"]);
    await api.reply(lease, { text: "dug" });
    const [ended, cursor] = lines(line, (await waiting).stdout);
    expect([ended, cursor]).toMatchObject([{ id: working, state: "completed" }, {}]);
    const page = await run(["results", "--limit", "1", "--json"]);
    expect(lines(line, page.stdout)).toMatchObject([{ id: done }, {}]);
  });

  test("--new prints each result once, for each principal; an empty list says where questions are", async () => {
    const { api, url, done, failed, working, lease } = await withEnds();
    const home = freshDir();
    const results = (token: string, ...more: string[]) =>
      runHere(["results", ...more], { env: { url, token }, childEnv: { XDG_STATE_HOME: home } });
    const ids = async (token = OPERATOR) =>
      lines(line, (await results(token, "--new", "--json")).stdout).flatMap((one) =>
        "id" in one ? one.id : [],
      );
    expect(await ids()).toEqual([done, failed]);
    expect(await ids()).toEqual([]);
    await api.reply(lease, { text: "dug" });
    expect(await ids()).toEqual([working]);
    expect(await results(OPERATOR, "--new")).toEqual({
      code: 0,
      stdout: "",
      stderr: "errand: nothing new.\n",
    });
    expect((await results(OPERATOR)).stdout).toContain("dug");
    const late = await results(OPERATOR, "--new", "--wait", "0.1");
    expect([late.code, late.stderr]).toEqual([124, expect.stringContaining("'errand results --new --wait")]);
    expect((await results(OPERATOR, "--new", "--after", "0")).code).toBe(64);
    const { token } = await as(url, "approver:ann");
    const none = await results(token, "--new");
    expect([none.stdout, none.stderr]).toEqual([
      "",
      expect.stringContaining("'errand inbox' shows the questions"),
    ]);
    const bob = await as(url, "caller:bob");
    const { id } = (await bob.delegate("scout")).body;
    await bob.cancel(id);
    expect(await ids(bob.token)).toEqual([id]);
  });

  test("--follow runs until Ctrl-C and prints the next cursor", async () => {
    const { start, api, done, failed, working, lease } = await withEnds();
    const follow = start(["results", "--follow", "--wide"]);
    const json = start(["results", "--follow", "--json"]);
    await until(() => follow.stdout().includes(failed) && json.stdout().includes("cursor"), {
      timeoutMs: 50_000,
    });
    await api.reply(lease, { text: "dug" });
    await until(() => follow.stdout().includes(working) && json.stdout().split('{"cursor"').length > 2, {
      timeoutMs: 50_000,
    });
    for (const one of [follow, json]) one.child.kill("SIGINT");
    expect([await follow.ended(), await json.ended()]).toEqual([130, 130]);
    expect(follow.stderr()).toMatch(/^errand: continue with: errand results --follow --after \S+\n$/);
    const ids = lines(line, json.stdout()).flatMap((one) => ("id" in one ? one.id : []));
    expect(ids).toEqual([done, failed, working]);
  });
});

describe("watch", () => {
  test("prints one delegation's events to its end, as lines or as JSON", async () => {
    const { run, done } = await withEnds();
    const result = await run(["watch", done, "--after", "0"]);
    expect(result).toMatchObject({ code: 0, stderr: "" });
    expect(result.stdout.trim().split("\n").at(-1)).toContain('"fine indeed"');
    const json = await run(["watch", done, "--after", "0", "--json"]);
    const types = lines(streamEventSchema, json.stdout).map(({ type }) => type);
    expect(types).toEqual(["DELEGATION_SENT", "DELEGATION_STATUS", "DELEGATION_COMPLETE"]);
    expect((await run(["watch", UNKNOWN])).code).toBe(66);
  });

  const item = z.looseObject({ type: z.string(), id: z.string().optional() });

  test("--questions begins with what is open already, and prints each question once", async () => {
    const { api, url } = await withEnds();
    await api.agent("asker");
    const ask = async (text: string) => {
      const { id } = (await api.delegate("asker")).body;
      const [{ lease_id }] = (await api.lease("asker")).body.leases;
      const { interrupt_id } = (await api.interrupt(lease_id, { text })).body;
      return { id: String(id), interrupt: String(interrupt_id) };
    };
    const asked = [await ask("First?"), await ask("Second?"), await ask("Answered?")];
    await api.answer(asked[2]?.id ?? "", asked[2]?.interrupt ?? "", { text: "yes" });
    const env = { url, token: OPERATOR };
    const started = [
      startHere(["watch", "--questions"], { env }),
      startHere(["watch", "--questions", "--target", "scout"], { env }),
      startHere(["watch", "--questions", "--json"], { env }),
      startHere(["watch", asked[0]?.id ?? "", "--questions"], { env }),
    ];
    const [all, other, json, one] = started;
    await until(
      () => all?.stdout().includes("Second?") && one?.stdout() && json?.stdout().includes("Second?"),
    );
    await ask("Third?");
    await until(() => all?.stdout().includes("Third?") && json?.stdout().includes("Third?"));
    const words = (stdout = "") => stdout.split("\n").map((line) => line.replace(/^.* asker {2}/, ""));
    expect(words(all?.stdout())).toEqual(['asks "First?"', 'asks "Second?"', 'asks "Third?"', ""]);
    expect(words(one?.stdout())).toEqual(['asks "First?"', ""]);
    expect(other?.stdout()).toBe("");
    // Whoever resumes after the first one would lose the second.
    expect(lines(item, json?.stdout() ?? "").map(({ type, id }) => [type, id !== undefined])).toEqual([
      ["DELEGATION_SNAPSHOT", false],
      ["DELEGATION_SNAPSHOT", true],
      ["DELEGATION_STATUS", true],
    ]);
    await api.cancel(asked[0]?.id ?? "");
    expect(await one?.done).toBe(0);
    for (const endless of [all, json]) endless?.closeStdout();
  });

  test("--questions reads the open questions again when events were lost, and says so", async () => {
    const { api, url, redis } = await withEnds();
    await api.agent("asker");
    const ask = async (text: string) => {
      await api.delegate("asker");
      const [{ lease_id }] = (await api.lease("asker")).body.leases;
      await api.interrupt(lease_id, { text });
    };
    const { cursor } = (await api.call("GET", "/v1/events", undefined, { accept: "application/json" })).body;
    await ask("Lost?");
    await ask("Kept?");
    // The event of the first question is gone, that of the second is not.
    await redis.xtrim(shardKeys(0).events, "MAXLEN", 1);
    const env = { url, token: OPERATOR };
    const words = startHere(["watch", "--questions", "--after", cursor], { env });
    const json = startHere(["watch", "--questions", "--after", cursor, "--json"], { env });
    await until(() => words.stdout().includes("Kept?") && json.stdout().includes("Kept?"));
    await ask("New?");
    await until(() => words.stdout().includes("New?") && json.stdout().includes("New?"));
    const asked = (stdout: string) => [...stdout.matchAll(/(Lost|Kept|New)\?/g)].map(([, word]) => word);
    expect(asked(words.stdout())).toEqual(["Lost", "Kept", "New"]);
    expect(words.stderr()).toMatch(
      /^errand: some events are no longer stored\. .* the open ones follow\.\n$/,
    );
    expect(lines(item, json.stdout()).map(({ type }) => type)).toEqual([
      ...["RESET", "DELEGATION_SNAPSHOT", "DELEGATION_SNAPSHOT", "DELEGATION_STATUS"],
    ]);
    expect(json.stderr()).toBe("");
    for (const endless of [words, json]) endless.closeStdout();
  });

  test("--questions prints only questions, of all work or of one delegation", async () => {
    const { run, api, url, done } = await withEnds();
    const { id } = (await api.delegate("scout")).body;
    const [{ lease_id }] = (await api.lease("scout")).body.leases;
    await api.interrupt(lease_id, { text: "Which branch?" });
    await api.cancel(id);
    const one = await run(["watch", id, "--questions", "--after", "0"]);
    expect(one.stdout).toMatch(/^\S+ {2}\w{8} {2}scout {2}asks "Which branch\?"\n$/);
    expect((await run(["watch", done, "--questions", "--after", "0"])).stdout).toBe("");
    // All work has no end, so the test reads until the question is there.
    const all = startHere(["watch", "--questions", "--after", "0", "--json"], {
      env: { url, token: OPERATOR },
    });
    await until(() => all.stdout().endsWith("\n"));
    expect(lines(streamEventSchema, all.stdout())).toMatchObject([
      { delegation_id: id, status: "interrupted" },
    ]);
    all.closeStdout();
    await api.delegate("scout");
    await api.interrupt((await api.lease("scout")).body.leases[0].lease_id, { text: "And now?" });
    await all.done;
    expect((await run(["watch", "--questions", "--types", "DELEGATION_SENT"])).code).toBe(64);
  });

  test("ends quietly when its reader closes the pipe", async () => {
    const { url, dir, api } = await withEnds();
    const script = 'set -o pipefail; "$0" "$1" watch --after 0 2>err | head -n 1; echo "status $?"; cat err';
    const shell = spawn("bash", ["-c", script, process.execPath, MAIN], {
      cwd: dir,
      env: { PATH: process.env.PATH, ERRAND_URL: url, ERRAND_TOKEN: OPERATOR },
      stdio: ["ignore", "pipe", "inherit"],
    });
    let stdout = "";
    shell.stdout.on("data", (chunk) => {
      stdout += chunk;
    });
    const closed = once(shell, "close");
    // The CLI notices the closed pipe at its next write, so there must be one after `head` has ended.
    const more = async () => {
      await api.delegate("scout");
      return shell.exitCode !== null;
    };
    await until(more, { what: "its end" });
    await closed;
    expect(stdout).toMatch(/^\S+ {2}\w{8} {2}scout {2}queued [^\n]+\nstatus 141\n$/);
  });
});
