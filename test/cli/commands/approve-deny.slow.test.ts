/** `errand approve` and `deny` for several delegations: shows them, asks for confirmation, decides only what it showed. */
import { expect, test } from "vitest";
import { z } from "zod";
import { as, client, OPERATOR, startBroker } from "../../support/broker.ts";
import { atTerminal } from "../../support/terminal.ts";
import { until } from "../../support/until.ts";
import { lines } from "../broker/cli.ts";
import { run as runHere, type Setting } from "../fake-host.ts";

const TERMINAL = { stdin: true, stderr: true };

async function setup() {
  const { url } = await startBroker();
  const api = client(url);
  for (const agent of ["deployer", "scout"]) await api.agent(agent);
  const asking = async (agent: string, question: Record<string, unknown>, task = "release 7") => {
    const { id } = (await api.delegate(agent, { task })).body;
    const [lease] = (await api.lease(agent)).body.leases;
    const { interrupt_id } = (await api.interrupt(lease.lease_id, question)).body;
    return { id: String(id), interrupt_id: String(interrupt_id) };
  };
  const run = (args: string[], setting: Setting = {}) =>
    runHere(args, {
      env: { url, token: OPERATOR },
      ...setting,
      childEnv: { PATH: process.env.PATH, NO_COLOR: "1" },
    });
  const stateOf = async ({ id }: { id: string }) => (await api.get(id)).body.state;
  return { url, api, asking, run, stateOf };
}

test("several are shown with agent, delegator, task and question, and sent after confirmation", async () => {
  const { asking, run, stateOf } = await setup();
  const first = await asking("deployer", { text: "Deploy?", options: ["approve", "deny"] });
  const long = `${"Clean up. ".repeat(30)}And drop the database?`;
  const action = { name: "delete", arguments: {} };
  const second = await asking("scout", { text: `${long} Delete\u001b[2J it?`, action }, "tidy up");
  const plain = await asking("scout", { text: "What is the branch's name?" });
  const which = await asking("scout", { text: "Which?", options: ["main", "next"] });
  const several = await asking("scout", { requests: [{ text: "a" }, { text: "b" }] });
  const credential = await asking("scout", { kind: "auth", text: "A token?" });

  const refused = await run(["approve", "--all"], { tty: TERMINAL, stdin: "n\n" });
  expect([refused.code, refused.stdout]).toEqual([64, ""]);
  expect(refused.stderr).toContain(
    `Deploy? (approve | deny)\n  ${first.id} deployer, for operator: release 7\n`,
  );
  // All of what is decided, however long.
  expect(refused.stderr.replaceAll(/\s+/g, " ")).toContain(
    `${long} Delete it? [delete {}] ${second.id} scout, for operator: tidy up `,
  );
  expect(refused.stderr).toContain("Approve these 2? [y/N]");
  expect(refused.stderr).toContain("Nothing was sent.");
  expect(await stateOf(first)).toBe("input_required");

  const done = await run(["approve", "--all"], { tty: TERMINAL, stdin: "y\n" });
  expect([done.code, done.stdout]).toEqual([0, `approved ${first.id}\napproved ${second.id}\n`]);
  expect(await stateOf(first)).toBe("submitted");
  expect(done.stderr).toContain("errand: skipped 4 without 'approve'; see 'errand inbox'.");
  for (const left of [which, several, plain]) expect(await stateOf(left)).toBe("input_required");
  expect(await stateOf(credential)).toBe("auth_required");
  expect((await run(["deny", "--all"], { tty: TERMINAL })).stderr).toContain("nothing to deny.");
});

test("on a real terminal, what was typed before the questions are shown confirms nothing, and Ctrl-C ends it", async () => {
  const { url, asking, stateOf } = await setup();
  const one = await asking("deployer", { text: "Deploy?", options: ["approve", "deny"] });
  const { child, closed, screen } = atTerminal(["approve", "--all"], {
    ERRAND_URL: url,
    ERRAND_TOKEN: OPERATOR,
  });
  child.stdin.write("y\r");
  await until(() => screen().includes("Approve this? [y/N] "), { what: "the prompt" });
  child.stdin.write("\u0003");
  await closed;
  expect([child.exitCode, await stateOf(one)]).toEqual([130, "input_required"]);
  expect(screen()).not.toContain("approved");
});

test("on a terminal, a single approval says which question it answered", async () => {
  const { asking, run } = await setup();
  const one = await asking("deployer", {
    text: "Deploy?",
    action: { name: "deploy", arguments: { host: "db1" } },
  });
  expect(await run(["approve", one.id], { tty: TERMINAL })).toEqual({
    code: 0,
    stdout: `approved ${one.id}\n`,
    stderr: 'errand: the question was: Deploy? [deploy {"host":"db1"}]\n',
  });
});

test("without a terminal several are decided only with --yes", async () => {
  const { api, asking, run, stateOf } = await setup();
  const options = ["approve", "deny"];
  const ids = [
    await asking("deployer", { text: "1?", options }),
    await asking("deployer", { text: "2?", options }),
  ];
  const other = await asking("scout", { text: "3?", options });
  for (const args of [
    ["approve", "--all"],
    ["approve", ...ids.map(({ id }) => id)],
  ]) {
    for (const tty of [{}, { ...TERMINAL, stdin: false }]) {
      const { code, stderr } = await run(args, { tty });
      expect([code, stderr]).toEqual([64, expect.stringMatching(/--yes.*'errand inbox'/s)]);
    }
    expect((await run([...args, "--json"], { tty: TERMINAL })).code).toBe(64);
  }
  const { code, stdout } = await run([
    "deny",
    "--all",
    "--target",
    "deployer",
    "--text",
    "no",
    "--yes",
    "--json",
  ]);
  expect(code).toBe(0);
  expect(lines(z.looseObject({}), stdout)).toMatchObject(ids.map(({ id }) => ({ id, outcome: "sent" })));
  expect((await api.get(ids[0]?.id ?? "")).body.history.at(-1)).toMatchObject({
    parts: [{ text: "no" }],
    metadata: { decision: "deny" },
  });
  expect(await stateOf(other)).toBe("input_required");
});

test("a question that needs more than a yes or no is refused before anything is sent", async () => {
  const { api, asking, run, stateOf } = await setup();
  for (const [question, why, command] of [
    [{ kind: "auth", text: "A token?" }, "asks for a credential", "ID' on a terminal"],
    [{ text: "Which?", options: ["main", "next"] }, "offers main | next", 'ID "…"\''],
    [{ text: "How many?", schema: { type: "number" } }, "asks for data", "ID --data <json>'"],
    [{ requests: [{ request_id: "a" }, { request_id: "b" }] }, "asks 2 things at once: a, b", "--answers"],
  ] as const) {
    const one = await asking("scout", question);
    for (const verb of ["approve", "deny"]) {
      const { code, stdout, stderr } = await run([verb, one.id, "--text", "ok"]);
      expect([code, stdout]).toEqual([64, ""]);
      expect(stderr).toContain(`errand: ${one.id} ${why}. Answer with 'errand answer `);
      expect(stderr).toContain(command.replace("ID", one.id));
    }
    expect(await stateOf(one)).toMatch(/_required$/);
    const shown = (await run(["get", one.id])).stdout;
    expect(shown).toContain(command.replace("ID", one.id));
    expect(shown).not.toContain("errand approve");
    await api.cancel(one.id);
  }
});

test("a consent, a plain question and, with --data, a question for data can be approved", async () => {
  const { api, asking, run, stateOf } = await setup();
  for (const [question, ...more] of [
    [{ kind: "auth", text: "Use your account?", options: ["approve", "deny"] }],
    [{ text: "Deploy?" }],
    [{ text: "How many?", schema: { type: "number" } }, "--data", "7"],
  ] as const) {
    const one = await asking("scout", question);
    expect(await run(["approve", one.id, ...more])).toMatchObject({
      code: 0,
      stdout: `approved ${one.id}\n`,
    });
    expect(await stateOf(one)).toBe("submitted");
    await api.cancel(one.id);
  }
});

test("every id is reported with its outcome, and one that was not decided sets the exit code", async () => {
  const { api, asking, run } = await setup();
  const fine = await asking("deployer", { text: "1?" });
  const several = await asking("deployer", { requests: [{ request_id: "a" }, { request_id: "b" }] });
  const over = await asking("deployer", { text: "2?" });
  await api.cancel(over.id);
  const unknown = `${fine.id.slice(0, -4)}0000`;
  const ids = [several.id, over.id, unknown, "dlg_0_Short", fine.id];

  const text = await run(["approve", ...ids, "--yes"]);
  expect([text.code, text.stdout]).toEqual([66, `approved ${fine.id}\n`]);
  expect(text.stderr).toContain(`${several.id} asks 2 things at once: a, b. Answer with 'errand answer`);
  expect(text.stderr).toContain(`${over.id} has no open question: it is canceled.`);
  expect(text.stderr).toContain(unknown);
  expect(text.stderr).toContain("dlg_0_Short");
  expect(text.stderr).toContain("errand: 4 of 5 were not approved.");

  const short = await asking("scout", { text: "4?" });
  const some = await run(["approve", "zzzzzzzzz", short.id.slice(6, -1), "--yes"]);
  expect([some.code, some.stdout]).toEqual([66, `approved ${short.id}\n`]);
  expect(some.stderr).toContain("begins with 'zzzzzzzzz'");
  expect(some.stderr).toContain("errand: 1 of 2 were not approved.");
  await api.cancel(short.id);

  const next = await asking("scout", { text: "3?" });
  const json = await run(["deny", ...ids.slice(0, 4), next.id, "--yes", "--json"]);
  expect([json.code, json.stderr]).toEqual([66, ""]);
  expect(lines(z.looseObject({}), json.stdout)).toMatchObject([
    { id: several.id, outcome: "not_sent", error: { code: "invalid_request" } },
    { id: over.id, outcome: "not_sent", error: { code: "interrupt_not_open" } },
    { id: unknown, outcome: "not_sent", error: { code: "delegation_not_found" } },
    { id: "dlg_0_Short", outcome: "not_sent", error: { code: "delegation_not_found" } },
    { id: next.id, outcome: "sent", delegation: { state: "submitted" } },
  ]);
});

test("an answer that the broker refuses is reported as refused, and the others are sent", async () => {
  const { asking, run, url } = await setup();
  const { token } = await as(url, "viewer:eve");
  const ids = [await asking("deployer", { text: "1?" }), await asking("deployer", { text: "2?" })];
  const { code, stdout } = await run(["approve", ...ids.map(({ id }) => id), "--yes", "--json"], {
    env: { url, token },
  });
  expect(code).toBe(77);
  expect(lines(z.looseObject({}), stdout)).toMatchObject([
    { id: ids[0]?.id, outcome: "refused", error: { code: "forbidden" } },
    { id: ids[1]?.id, outcome: "not_sent", error: { code: "forbidden" } },
  ]);
});

test("an invalid id in a list is named", async () => {
  const { run } = await setup();
  for (const command of ["delete", "approve"]) {
    const { code, stderr } = await run(
      [command, "dlg_0_Short", "dlg_0_Other", "--yes"].slice(0, command === "delete" ? 3 : 4),
    );
    expect(code).toBe(66);
    expect(stderr).toContain("dlg_0_Short");
    const word = await run([command, "dlg_A_1", "Scout"]);
    expect([word.code, word.stderr]).toEqual([64, expect.stringContaining("'Scout'")]);
  }
});

test.each([
  [["approve"], "no delegation id given"],
  [["approve", "--all", "dlg_A_1"], "either ids or --all"],
  [["deny", "dlg_A_1", "--target", "scout"], "require --all"],
  [["deny", "dlg_A_1", "dlg_A_2", "--interrupt", "int_1"], "requires exactly one id"],
])("%o is refused before anything is sent", async (args, why) => {
  const { code, stderr } = await runHere(args, { env: { url: "http://127.0.0.1:9", token: "t" } });
  expect([code, stderr]).toEqual([64, expect.stringContaining(why)]);
});
