/** What the CLI says after a slip: the word that was meant, and the command that helps, as it can be pasted. */
import { Writable } from "node:stream";
import { describe, expect, test } from "vitest";
import { toFailure } from "../../src/cli/failure.ts";
import { otherNames } from "../../src/cli/other-names.ts";
import { buildProgram, everyCommand, pathOf } from "../../src/cli/program.ts";
import { as, client, OPERATOR, startBroker } from "../support/broker.ts";
import { host, run } from "./fake-host.ts";

async function broker() {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  return { api, url, env: { url, token: OPERATOR } };
}

test.each([
  [["list", "--state", "complted"], "Did you mean completed?"],
  [["list", "--state", "working,workng"], "Did you mean working?"],
  [["list", "-o", "id,stat"], "Did you mean state?"],
  [["list", "-o", "json"], "use --json instead of -o"],
  [["watch", "--types", "delegation_snt"], "Did you mean DELEGATION_SENT?"],
  [["list", "--targt", "scout"], "Did you mean --target?"],
  [["work", "--agent", "x", "node", "a.js", "-v"], "Put '--' before the command"],
  [["show", "dlg_1"], "unknown command 'show'. Did you mean 'errand get'? See 'errand --help'."],
  [["agent", "create", "x"], "Did you mean 'errand agent put'?"],
  [["constructor"], "unknown command 'constructor'. See 'errand --help'."],
])("%j", async (argv, said) => {
  const { code, stderr } = await run(argv);
  expect([code, stderr]).toEqual([64, expect.stringContaining(said)]);
});

test("an other name is understood although another command is spelled alike", async () => {
  for (const { path, name, meant } of otherNames) {
    const { code, stderr } = await run([...path.split(" ").slice(1), name]);
    expect([code, stderr]).toEqual([64, expect.stringContaining(`Did you mean '${path} ${meant}'?`)]);
    expect(stderr).not.toContain("(Did you mean");
  }
});

/** What users of other programs type, with what they mean here. */
test.each([
  ["kubectl", "get", "view describe show"],
  ["kubectl", "get <id> --artifacts <folder>", "cp"],
  ["kubectl", "watch", "attach"],
  ["kubectl", "agent put", "apply edit patch replace set"],
  ["kubectl", "agent pause", "cordon drain"],
  ["kubectl", "agent resume", "uncordon"],
  ["kubectl", "doctor", "config debug"],
  ["kubectl", "status", "cluster-info whoami"],
  ["kubectl and gh", "delegate", "create run exec"],
  ["gh", "get <id> --artifacts <folder>", "download"],
  ["gh", "cancel", "close"],
  ["gh", "redrive", "rerun reopen"],
  ["gh", "message", "comment"],
  ["gh", "sessions link", "login auth browse"],
  ["docker", "list", "ps ls"],
  ["docker", "get <id> --wait", "wait"],
  ["docker", "get", "inspect"],
  ["docker", "watch", "events attach"],
  ["docker", "delete", "rm prune"],
  ["docker", "backup", "save export"],
  ["docker", "restore", "load import"],
  ["docker", "cancel", "kill stop"],
  ["temporal", "list", "workflow"],
  ["temporal", "delegate", "execute"],
  ["temporal", "cancel", "terminate"],
  ["temporal", "redrive", "reset"],
  ["temporal", "message", "signal"],
  ["temporal", "logs", "trace"],
  ["temporal", "schedule list", "schedules"],
  ["celery", "delegate", "call"],
  ["celery", "get", "result"],
  ["celery", "cancel", "purge"],
  ["celery", "doctor", "ping"],
  ["celery", "list --state working", "active"],
  ["celery and rq", "work", "worker"],
  ["rq", "delegate", "enqueue"],
  ["rq", "redrive", "requeue"],
  ["rq", "cancel", "empty"],
  ["rq", "agent pause", "suspend"],
  ["rq", "agent resume", "resume"],
  ["rq", "agent workers", "workers"],
  ["queues", "redrive", "resubmit retry replay"],
  ["queues", "work", "poll consume claim lease"],
  ["queues", "list --state failed", "dlq"],
  ["people", "inbox", "question questions pending"],
  ["people", "message", "tell say"],
  ["people", "doctor", "health healthcheck diagnose"],
  ["people", "serve", "setup init start up"],
  // Spelled wrong, as well.
  ["people", "logs", "histroy"],
  ["people", "cancel", "termiate"],
  ["people", "redrive", "requeu"],
])("users of %s find '%s' by %s", async (_program, meant, words) => {
  for (const word of words.split(" ")) {
    const { code, stderr } = await run([word]);
    expect([code, stderr]).toEqual([
      64,
      `errand: unknown command '${word}'. Did you mean 'errand ${meant}'? See 'errand --help'.\n`,
    ]);
  }
});

test.each([
  ["delgate", " (Did you mean delegate?)"],
  ["cancl", " (Did you mean cancel?)"],
  ["lst", " (Did you mean list?)"],
  // Nothing is better than a word that only shares some letters.
  ["ack", ""],
  ["nack", ""],
  ["frob", ""],
  ["deep", ""],
  ["teleport", ""],
])("only a word that is spelled like a command has a guess: %s", async (word, guess) => {
  const { stderr } = await run([word]);
  expect(stderr).toBe(`errand: unknown command '${word}'${guess}. See 'errand --help'.\n`);
});

test("each other name of a command stands for one that exists, and is none itself", async () => {
  const program = await buildProgram({ host: host(), end: () => undefined, unknownIds: new Map() });
  const paths = everyCommand(program).map(pathOf);
  for (const { path, name, meant } of otherNames) {
    expect(paths).not.toContain(`${path} ${name}`);
    const [command] = meant.split(/ (?=[-<])|^-/);
    expect(paths).toContain(`${path} ${command}`.trim());
  }
});

test("output that cannot be written is no bug of errand", () => {
  const full = Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
  const { exitCode, error } = toFailure(full, "errand list");
  expect([exitCode, error?.code]).toEqual([78, "output_failed"]);
  expect(error?.message).toContain("no space is left on the device");
});

test("help and the version that cannot be written are an error, too", async () => {
  const failing = (code: string) =>
    new Writable({
      write: (_chunk, _encoding, done) => done(Object.assign(new Error(`${code}: write`), { code })),
    });
  const program = await buildProgram({ host: host(), end: () => undefined, unknownIds: new Map() });
  const paths = everyCommand(program).map((command) => pathOf(command).split(" ").slice(1));
  const calls = [
    ...paths.flatMap((path) => [
      [...path, "--help"],
      ["help", ...path],
    ]),
    ...[["-h"], ["--version"], ["-V"], ["completion", "bash"], ["agent", "help", "put"]],
  ];
  for (const argv of calls) {
    for (const [code, exitCode, said] of [
      ["ENOSPC", 78, "cannot write the output: no space is left on the device"],
      ["EDQUOT", 78, "cannot write the output: the disk quota is used up"],
      ["EPIPE", 141, ""],
    ] as const) {
      const done = await run(argv, { stdout: failing(code) });
      expect([argv, done.code, done.stderr]).toEqual([argv, exitCode, expect.stringContaining(said)]);
      if (said === "") expect(done.stderr).toBe("");
    }
  }
  expect((await run(["--version"])).code).toBe(0);
});

test("a misspelled agent is suggested wherever it is named", async () => {
  const { env } = await broker();
  for (const [argv, code] of [
    [["agent", "get", "scuot"], 66],
    [["stats", "scuot"], 66],
    [["agent", "pause", "scuot"], 66],
    [["list", "--target", "scuot"], 0],
  ] as const) {
    const done = await run([...argv], { env });
    expect([argv, done.code, done.stderr]).toEqual([
      argv,
      code,
      expect.stringContaining("Did you mean scout?"),
    ]);
  }
  const none = await run(["list", "--target", "builder"], { env });
  expect(none.stderr).toBe("errand: there is no agent builder.\n");
  expect((await run(["list", "--target", "scout"], { env })).stderr).toBe("errand: no delegations match.\n");
});

test("--state asks finds every open question", async () => {
  const { api, env } = await broker();
  for (const kind of ["input", "auth"]) {
    await api.delegate("scout", { task: kind });
    await api.interrupt((await api.lease("scout")).body.leases[0].lease_id, { kind, text: "?" });
  }
  const { stdout } = await run(["list", "--state", "asks", "-o", "state,task"], { env });
  expect(stdout).toBe("STATE  TASK\nasks   auth\nasks   input\n");
});

test("a message to a delegation that asks says to answer", async () => {
  const { api, env, url } = await broker();
  const { id } = (await api.delegate("scout")).body;
  await api.interrupt((await api.lease("scout")).body.leases[0].lease_id, { text: "Which branch?" });
  const { code, stderr } = await run(["message", id, "main"], { env });
  expect(code).toBe(64);
  expect(stderr).toContain(`${id} asks a question, so it takes an answer and no message.`);
  expect(stderr).toContain(`Answer with 'errand answer ${id} "…"'`);
  // Those who may not see it learn nothing.
  const { token } = await as(url, "caller:eve");
  expect((await run(["message", id, "main"], { env: { url, token } })).stderr).not.toContain("question");
});

describe("hints name the program as it was started", () => {
  test("./errand, in errors, notes and details, but not in JSON", async () => {
    const { api, env } = await broker();
    const { id } = (await api.delegate("scout")).body;
    await api.interrupt((await api.lease("scout")).body.leases[0].lease_id, { text: "'errand list'?" });
    const command = "./errand";
    expect((await run(["get", id], { env, command })).stdout).toContain(`'./errand answer ${id}`);
    expect((await run(["results"], { env, command })).stderr).toContain("next: ./errand results --after");
    const failed = await run(["delegate", "nobody", "x"], { env, command });
    expect(failed.stderr).toContain("'./errand agent list'");
    const away = await run(["list"], { env: { url: "http://127.0.0.1:2", token: "t" }, command });
    expect(away.stderr).toContain("'npm start' in Errand's folder or './errand serve'");
    expect(
      (await run(["list", "--json"], { env: { url: "http://127.0.0.1:2", token: "t" }, command })).stderr,
    ).toContain("'errand serve'");
  });

  test("a reply stays as it is", async () => {
    const { api, env } = await broker();
    const { id } = (await api.delegate("scout")).body;
    const [{ lease_id }] = (await api.lease("scout")).body.leases;
    const text = "First.\n\nThen run 'errand list'.";
    await api.reply(lease_id, { text });
    const { stdout } = await run(["get", id], { env, command: "./errand" });
    expect(stdout.endsWith(`\n\n${text}\n`)).toBe(true);
  });

  test("errand otherwise", async () => {
    const { env } = await broker();
    expect((await run(["delegate", "nobody", "x"], { env })).stderr).toContain("'errand agent list'");
  });
});
