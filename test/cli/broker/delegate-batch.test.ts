/** `errand delegate --batch` against a real gateway. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { delegationSchema } from "../../../src/schema/delegation.ts";
import { problemSchema } from "../../../src/schema/problem.ts";
import { OPERATOR } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { run as runHere, start as startHere } from "../fake-host.ts";
import { lines, setup } from "./cli.ts";

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
    const which = ["delegate", "scout", "--batch", join(dir, "tasks.jsonl"), "--priority", "7"];
    const mixed = await run(which);
    // Of 66 (nobody) and 64 (malformed), 66 is more serious.
    expect(mixed.code).toBe(66);
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
    expect(said.slice(3)).toEqual([
      expect.stringMatching(
        /^errand: 3 of 6 lines were refused; send only these lines again, or all with --idempotency-key \S+, so that the others are not sent twice\.$/,
      ),
      "",
    ]);

    const json = await run([...which, "--json"]);
    expect([json.code, json.stderr]).toEqual([66, ""]);
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

  test("exits with 75 if the broker is unavailable; with a task or --watch it is a usage error", async () => {
    const { run, gateway } = await setup();
    await gateway.close();
    const away = await run(["delegate", "scout", "--batch", "-"], { input: '{"task": "x"}' });
    expect([away.code, away.stdout]).toEqual([75, ""]);
    for (const more of [["x"], ["--watch"], ["--file", "f"], ["--attach", "f"]]) {
      const { code, stderr } = await runHere(["delegate", "scout", "--batch", "-", ...more], { stdin: "" });
      expect([code, stderr]).toEqual([64, expect.stringContaining("--batch cannot be combined with a task")]);
    }
    const none = await runHere(["delegate"]);
    expect(none.stderr).toContain("missing required argument 'agent'");
  });

  /** A worker that completes, fails or asks, as the task says, until the test ends. */
  async function obedient({ api }: Awaited<ReturnType<typeof setup>>) {
    await api.agent("scout", { limits: { max_attempts: 1 } });
    const work = async (count: number) => {
      for (let done = 0; done < count; done += 1) {
        const { lease_id, delegation } = (await api.lease("scout", { wait_seconds: 60 })).body.leases[0];
        const error = { code: "no_disk", message: "it broke" };
        if (delegation.task_preview === "fail")
          await api.reply(lease_id, { state: "failed", text: undefined, error });
        else if (delegation.task_preview === "ask") await api.interrupt(lease_id, { text: "Which branch?" });
        else await api.reply(lease_id, { text: `did ${delegation.task_preview}` });
      }
    };
    return work;
  }

  test("--wait prints one line for each when all have ended, and exits with the worst code", async () => {
    const setting = await setup();
    const work = await obedient(setting);
    const batch = async (tasks: readonly string[], ...more: string[]) => {
      const [done] = await Promise.all([
        setting.run(["delegate", "scout", "--batch", "-", "--wait", ...more], {
          input: tasks.map((task) => JSON.stringify({ task })).join("\n"),
        }),
        work(tasks.length),
      ]);
      return done;
    };
    const mixed = await batch(["one", "fail", "ask"]);
    const asks = /^3 +(\w+) +asks/m.exec(mixed.stdout)?.[1];
    expect([mixed.code, mixed.stderr]).toEqual([
      1,
      expect.stringMatching(
        new RegExp(`^errand: to answer, run 'errand answer dlg_\\w+_${asks}\\w+ "…"'.*\\.\\n$`),
      ),
    ]);
    expect(
      mixed.stdout
        .split("\n")
        .map((line) => line.replace(/ +\d+s +/, " AGE ").replace(/^(\d +)\w{8,}/, "$1ID")),
    ).toEqual([
      expect.stringMatching(/^LINE +ID +STATE +TARGET +AGE +TASK +RESULT$/),
      expect.stringMatching(/^1 +ID +completed +scout AGE one +did one$/),
      expect.stringMatching(/^2 +ID +failed +scout AGE fail +\(no_disk\) it broke$/),
      expect.stringMatching(/^3 +ID +asks +scout AGE ask +Which branch\?$/),
      "",
    ]);
    expect((await batch(["one", "ask"])).code).toBe(79);
    const json = await batch(["one", "two"], "--json");
    expect([json.code, json.stderr]).toEqual([0, ""]);
    const ended = lines(one, json.stdout);
    expect(ended.map(({ line, delegation }) => [line, delegation.state])).toEqual([
      [1, "completed"],
      [2, "completed"],
    ]);
  });

  test("--wait does not end at a question that is approved in advance", async () => {
    const { api, run } = await setup();
    await api.agent("scout");
    const lease = async () => (await api.lease("scout", { wait_seconds: 60 })).body.leases[0].lease_id;
    const work = async () => {
      const action = { name: "deploy", arguments: {} };
      await api.interrupt(await lease(), { text: "Deploy?", action });
      await api.reply(await lease(), { text: "deployed" });
    };
    const args = ["delegate", "scout", "--batch", "-", "--wait", "--auto-approve", "all"];
    const [done] = await Promise.all([run(args, { input: '{"task": "one"}' }), work()]);
    expect([done.code, done.stderr]).toEqual([0, ""]);
    expect(done.stdout).toMatch(/ completed +scout +\d+s +one +deployed$/m);
  });

  test("--wait with --timeout says what continues; a bar counts on a terminal", async () => {
    const setting = await setup();
    const work = await obedient(setting);
    const late = await setting.run(["delegate", "scout", "--batch", "-", "--wait", "--timeout", "0.1"], {
      input: '{"task": "one"}',
    });
    expect(late.code).toBe(124);
    expect(late.stdout).toMatch(/ submitted +scout +\d+s +one +one$/m);
    expect(late.stderr).toBe("errand: 1 of 1 continue.\n");

    const started = startHere(["delegate", "scout", "--batch", "-", "--wait"], {
      env: { url: setting.url, token: OPERATOR },
      stdin: ["one", "two"].map((task) => JSON.stringify({ task })).join("\n"),
      tty: { stdin: false, stderr: true },
    });
    await work(2);
    await until(() => started.stderr().includes("[#####-----] 1 done, 0 failed, 1 waiting"), {
      what: "the bar",
    });
    await work(1);
    expect(await started.done).toBe(0);
    expect(started.stderr().endsWith("\r\u001b[2K")).toBe(true);
  });
});
