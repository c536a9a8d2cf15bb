/** `errand delegate` against a real gateway. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { acceptedDelegationSchema, delegationSchema } from "../../../src/schema/delegation.ts";
import { streamEventSchema } from "../../../src/schema/event.ts";
import { startReceiver } from "../../support/receiver.ts";
import { until } from "../../support/until.ts";
import { run as runHere } from "../fake-host.ts";
import { lines, problemIn, setup } from "./cli.ts";

const NOBODY_POLLS = "errand: no worker is polling scout; the delegation is queued.\n";

describe("the task", () => {
  test("words with all options; prints the id, or one JSON object", async () => {
    const { api, run } = await setup();
    await api.agent("scout");
    const options = [
      "--priority",
      "9",
      "--context",
      "c:1",
      "--delay",
      "60",
      "--ttl",
      "600",
      "--max-attempts",
      "2",
    ];
    const meta = ["--meta", "a=1", "--meta", "b=x=y"];
    const made = await run(["delegate", "scout", "two", "words", ...options, ...meta]);
    expect([made.code, made.stderr]).toEqual([0, NOBODY_POLLS]);
    const { body } = await api.get(made.stdout.trim());
    expect(body).toMatchObject({
      task_preview: "two words",
      priority: 9,
      context_id: "c:1",
      max_attempts: 2,
      metadata: { a: "1", b: "x=y" },
    });
    const seconds = (at: string) => (Date.parse(at) - Date.parse(body.created_at)) / 1000;
    expect(Math.round(seconds(body.not_before_at))).toBe(60);
    expect(Math.round(seconds(body.deadline_at))).toBe(660);

    const json = await run(["delegate", "scout", "again", "--json"]);
    expect(lines(acceptedDelegationSchema, json.stdout)).toMatchObject([{ presence: { state: "offline" } }]);
  });

  test("from a file, from stdin, and as an A2A Message from either", async () => {
    const { api, dir, run } = await setup();
    await api.agent("scout");
    const parts = [{ text: "look" }, { data: { deep: [1] }, metadata: { k: "v" } }];
    writeFileSync(join(dir, "task.md"), "# läne\n");
    writeFileSync(
      join(dir, "message.json"),
      JSON.stringify({ messageId: "m-1", parts, extensions: ["urn:x"] }),
    );
    const delegated = async (args: string[], input?: string) => {
      const { stdout, stderr } = await run(
        ["delegate", "scout", ...args],
        input === undefined ? {} : { input },
      );
      expect(stderr).toBe(NOBODY_POLLS);
      return (await api.get(stdout.trim())).body.message;
    };
    expect((await delegated(["--file", join(dir, "task.md")])).parts).toEqual([{ text: "# läne\n" }]);
    expect((await delegated(["-"], "from a pipe\n")).parts).toEqual([{ text: "from a pipe\n" }]);
    expect((await delegated([], "unasked\n")).parts).toEqual([{ text: "unasked\n" }]);
    const message = await delegated(["--message-file", join(dir, "message.json")]);
    expect(message).toMatchObject({ messageId: "m-1", extensions: ["urn:x"], parts });
    expect((await delegated(["--message-file", "-"], JSON.stringify({ parts }))).parts).toEqual(parts);
  });

  test("--result-schema: the result is JSON that fits, and is printed alone", async () => {
    const { api, dir, run } = await setup();
    await api.agent("scout");
    const path = join(dir, "schema.json");
    writeFileSync(path, '{"type": "object", "required": ["words"]}');
    const made = await run(["delegate", "scout", "count", "--result-schema", path]);
    const id = made.stdout.trim();
    const [lease] = (await api.lease("scout")).body.leases;
    expect(lease.delegation).toMatchObject({ id, result_schema: { required: ["words"] } });
    const parts = [{ text: "counted" }, { data: { words: "\u001b[31m5" } }];
    await api.call("POST", `/v1/leases/${lease.lease_id}/reply`, { state: "completed", message: { parts } });
    const shown = await run(["get", id, "--reply"]);
    expect(shown.stdout).toBe('{"words":"\\u001b[31m5"}\n');
    expect(shown.stderr).toContain("1 part(s) of the reply are not shown");
    expect((await run(["get", id])).stdout).toMatch(/\n\n{"words":"\\u001b\[31m5"}\n$/);

    writeFileSync(path, '{"pattern": "x"}');
    const refused = await run(["delegate", "scout", "count", "--result-schema", path]);
    expect([refused.code, refused.stderr]).toEqual([64, expect.stringContaining("result_schema.pattern")]);
    writeFileSync(path, "{");
    const wrong = await run(["delegate", "scout", "count", "--result-schema", path]);
    expect([wrong.code, wrong.stderr]).toEqual([64, expect.stringContaining("is not JSON")]);
  });

  test("the same key returns the same delegation; with another body it is a conflict", async () => {
    const { api, run } = await setup();
    await api.agent("scout");
    const key = ["--idempotency-key", "nightly"];
    const first = await run(["delegate", "scout", "x", ...key]);
    expect(await run(["delegate", "scout", "x", ...key])).toEqual(first);
    const other = await run(["delegate", "scout", "y", ...key]);
    expect(other.code).toBe(64);
    expect(other.stderr).toContain("Use another --idempotency-key");
    expect((await api.call("GET", "/v1/delegations")).body.delegations).toHaveLength(1);
  });
});

describe("--wait and --watch", () => {
  test("--wait prints only the reply, or with --json the delegation", async () => {
    const { run, worker } = await setup();
    await worker("scout", "wc", "-w");
    expect(await run(["delegate", "scout", "a b c", "--wait"])).toEqual({
      code: 0,
      stdout: "3\n",
      stderr: "",
    });
    const json = await run(["delegate", "scout", "a b", "--wait", "--json"]);
    expect(lines(delegationSchema, json.stdout)).toMatchObject([{ state: "completed" }]);
  });

  test("--watch prints events on stderr and the reply on stdout; with --json all on stdout", async () => {
    const { run, worker } = await setup();
    await worker("scout", "cat");
    const { code, stdout, stderr } = await run(["delegate", "scout", "hello", "--watch"]);
    expect([code, stdout]).toEqual([0, "hello\n"]);
    const types = stderr
      .trim()
      .split("\n")
      .map((line) => line.split(/ {2,}/)[3]);
    expect(types[0]).toBe('queued "hello"');
    expect(types.at(-1)).toMatch(/^completed in .*"hello"$/);

    const json = await run(["delegate", "scout", "hello", "--watch", "--json"]);
    expect(json.stderr).toBe("");
    const said = lines(z.union([streamEventSchema, delegationSchema]), json.stdout);
    expect(
      said.map((one) => ("type" in one ? one.type : one.state)).filter((one) => one !== "DELEGATION_STATUS"),
    ).toEqual(["DELEGATION_SENT", "DELEGATION_COMPLETE", "completed"]);
  });

  test("a failure is reported on stderr, with the exit code of its category", async () => {
    const { run, worker } = await setup();
    await worker("scout", "sh", "-c", "echo no luck >&2; exit 3");
    const result = await run(["delegate", "scout", "x", "--wait"]);
    expect([result.code, result.stdout]).toEqual([1, ""]);
    expect(result.stderr).toMatch(/^errand: dlg_\w+ failed: no luck\. /);
    const json = await run(["delegate", "scout", "x", "--wait", "--json"]);
    expect(json.code).toBe(1);
    expect(lines(delegationSchema, json.stdout)).toMatchObject([{ state: "failed" }]);
    expect(problemIn(json.stderr)).toMatchObject({ code: "command_failed", category: "UPSTREAM" });
  });

  test("--timeout ends the wait with 124, Ctrl-C with 130; the delegation continues", async () => {
    const { api, run, start } = await setup();
    await api.agent("scout");
    const timeout = await run(["delegate", "scout", "x", "--wait", "--timeout", "0.3"]);
    expect([timeout.code, timeout.stdout]).toEqual([124, ""]);
    expect(timeout.stderr).toMatch(/'errand get dlg_\w+ --wait' waits again/);
    const stopped = start(["delegate", "scout", "y", "--watch"]);
    await until(() => stopped.stderr().includes('queued "y"'));
    stopped.child.kill("SIGINT");
    expect(await stopped.ended()).toBe(130);
    expect(stopped.stderr()).toMatch(/dlg_\w+ continues\. See 'errand get/);
    const states = (await api.call("GET", "/v1/delegations")).body.delegations.map(Object);
    expect(states).toMatchObject([{ state: "submitted" }, { state: "submitted" }]);
  });
});

describe("errors, worded for the CLI", () => {
  test.each([
    [["delegate", "nobody", "x"], {}, 66, "'errand agent list'"],
    [["delegate", "scout", "x"], { token: "wrong-token" }, 77, "Set ERRAND_TOKEN or --token"],
    [["delegate", "scout", "x", "--context", "a\tb"], {}, 64, "See 'errand delegate --help'."],
    [["delegate", "Scout", "x"], {}, 64, "an agent name is"],
    [["delegate", "scout", "--message-file", "-"], { input: "{}" }, 64, "is not an A2A Message: parts"],
    [["delegate", "scout", "--message-file", "-"], { input: "{" }, 64, "is not JSON"],
    [["delegate", "scout", "x", "--file", "f"], {}, 64, "given twice: as an argument and with --file"],
  ] as const)("%j", async (args, setting, code, said) => {
    const { api, run } = await setup();
    await api.agent("scout");
    const result = await run(args, setting);
    expect([result.code, result.stdout]).toEqual([code, ""]);
    expect(result.stderr).toMatch(/^errand: [^\n]+\n$/);
    expect(result.stderr).toContain(said);
    const json = await run([...args, "--json"], setting);
    expect([json.code, json.stdout]).toEqual([code, ""]);
    expect(problemIn(json.stderr).recovery).not.toMatch(/\b(?:GET|PUT|POST|Authorization)\b/);
  });

  test("nothing listens: reported without retries, with what to do", async () => {
    const { run } = await setup();
    for (const command of [
      ["delegate", "scout", "x"],
      ["list"],
      ["watch"],
      ["work", "--agent", "a", "--", "cat"],
    ]) {
      const startedAt = performance.now();
      const result = await run(["--url", "http://127.0.0.1:4", ...command]);
      expect([result.code, result.stdout]).toEqual([75, ""]);
      expect(result.stderr).toMatch(
        /^errand: nothing answers at http:\/\/127\.0\.0\.1:4 \(ECONNREFUSED\)\. .*--url or ERRAND_URL/,
      );
      // Half of the time for which a command retries.
      expect(performance.now() - startedAt).toBeLessThan(30_000);
    }
  });
});

test.each([
  ["all", true],
  ["deploy,fs.*", { actions: ["deploy", "fs.*"] }],
])("delegate --auto-approve %s", async (given, auto_approve) => {
  const { api, run } = await setup();
  await api.agent("scout");
  const made = await run(["delegate", "scout", "x", "--auto-approve", given]);
  expect((await api.get(made.stdout.trim())).body.auto_approve).toEqual(auto_approve);
  const wrong = await run(["delegate", "scout", "x", "--auto-approve", "a*b"]);
  expect([wrong.code, wrong.stderr]).toEqual([64, expect.stringContaining("names of actions")]);
});

test("agent put --approvals person: work that is approved in advance is refused", async () => {
  const { run } = await setup();
  const put = await run(["agent", "put", "scout", "--approvals", "person"]);
  expect(put.stdout).toContain("not in advance");
  const { code, stderr } = await run(["delegate", "scout", "x", "--auto-approve", "all"]);
  expect([code, stderr]).toEqual([64, expect.stringContaining("refuses approval in advance")]);
  expect(stderr).toContain("Delegate without --auto-approve");
});

test("delegate --callback: the end is POSTed to the URL, signed", async () => {
  const { api, run } = await setup({ callbackAllow: ["127.0.0.1"] });
  await api.agent("scout");
  const { url, received } = await startReceiver();
  const secrets = [1, 2].map((byte) => `whsec_${Buffer.alloc(32, byte).toString("base64")}`);
  const how = ["--callback", url, "--callback-secret", ...secrets, "--callback-token", "let-me-in"];
  const made = await run(["delegate", "scout", "x", ...how]);
  expect([made.code, made.stderr]).toEqual([0, NOBODY_POLLS]);
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
    [["--callback", url, "--callback-secret", "short"], "--callback-secret: must be whsec_"],
  ] as const) {
    const { code, stderr } = await runHere(["delegate", "scout", "x", ...args]);
    expect([code, stderr]).toEqual([64, expect.stringContaining(said)]);
    expect(stderr).not.toContain("short");
  }
});
