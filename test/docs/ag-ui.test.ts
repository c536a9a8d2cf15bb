/** The snippets of docs/ag-ui.md are run, with AG-UI's own client, bash and curl, against a gateway. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { agUiPropsSchema } from "../../src/schema/ag-ui-input.ts";
import { agUi, setup, started } from "../doors/agui/support.ts";
import { OPERATOR } from "../support/broker.ts";
import { errand, freshDir } from "../support/program.ts";
import { until } from "../support/until.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PAGE = readFileSync(join(ROOT, "docs/ag-ui.md"), "utf8");
const DEFAULT_URL = "http://127.0.0.1:4180";

const snippets = [...PAGE.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = "", code = ""]) => ({
  language,
  code,
}));

/** The only snippet in this language that contains this text. */
function snippet(language: string, part: string): string {
  const found = snippets.filter((one) => one.language === language && one.code.includes(part));
  expect(found, `the snippet with '${part}'`).toHaveLength(1);
  return found[0]?.code ?? "";
}

/** Runs a program as a reader of the page does, at this gateway. */
async function run(program: string, args: readonly string[], url: string, token: string): Promise<string> {
  const local = args.map((arg) => arg.replaceAll(DEFAULT_URL, url));
  expect(local).not.toEqual(args);
  const env = { PATH: process.env.PATH, ERRAND_TOKEN: token };
  const { stdout } = await promisify(execFile)(program, local, { cwd: ROOT, env, timeout: 120_000 });
  return stdout;
}
const runShell = (code: string, url: string, token: string) => run("bash", ["-euc", code], url, token);

/** The lease of a run's work. A run that ends before it has work fails the test at once, with what it printed. */
const leaseOf = <T>(lease: () => Promise<T>, running: Promise<string>): Promise<T> =>
  Promise.race([
    lease(),
    running.then((printed) => {
      throw new Error(`the run ended before an agent had its work: ${printed}`);
    }),
  ]);

/** The events of a stream of server-sent events. */
const eventsIn = (stream: string) =>
  [...stream.matchAll(/^data: (.*)$/gm)].map(([, json = ""]) => JSON.parse(json));

test("every snippet of the page is run by a test below", () => {
  expect(snippets.map(({ language }) => language)).toEqual(["ts", "sh", "json", "sh", "json", "json"]);
});

test("the commands create an agent and a token, with which AG-UI's library prints the reply", async () => {
  const { url, lease, scout } = await setup();
  await scout.call("DELETE", "/v1/agents/scout");
  const [sentence = ""] = /^Create the agent and a token .*$/m.exec(PAGE) ?? [];
  const commands = [...sentence.matchAll(/`errand ([^`]+)`/g)].map(([, args = ""]) => args.split(" "));
  expect(commands).toHaveLength(2);
  let printed = "";
  for (const args of commands) {
    const program = errand(freshDir(), args, { ERRAND_URL: url, ERRAND_TOKEN: OPERATOR });
    expect(await program.ended(), program.stderr()).toBe(0);
    printed = program.stdout();
  }
  const token = printed.trim().split(/\s+/).at(-1) ?? "";
  const program = snippet("ts", "@ag-ui/client");
  const printing = run(process.execPath, ["--input-type=module", "-e", program], url, token);
  const { lease_id, delegation } = await leaseOf(lease, printing);
  expect(delegation).toMatchObject({ delegator: "caller:alice", context_id: "trip-to-lyon" });
  await scout.reply(lease_id, { text: `${delegation.message.parts[0].text}: done` });
  expect(await printing).toBe("find a hotel: done\n");
});

test("curl runs an agent, and a later curl without messages answers its question", async () => {
  const { url, alice, lease, scout } = await setup();
  const asking = runShell(snippet("sh", "count these words"), url, alice.token);
  const first = await leaseOf(lease, asking);
  expect(first.delegation.message).toMatchObject({ messageId: "m1", parts: [{ text: "count these words" }] });
  const question = { text: "Go ahead?", options: ["approve", "deny"] };
  const { interrupt_id } = (await scout.interrupt(first.lease_id, question)).body;
  const asked = eventsIn(await asking);
  expect(asked[0]).toMatchObject({ type: "RUN_STARTED", threadId: "t1", runId: "r1" });
  expect(asked.at(-1).outcome).toMatchObject({ type: "interrupt", interrupts: [{ id: interrupt_id }] });

  const answer = snippet("sh", '"resume"');
  expect(answer).toContain("int_…");
  const answering = runShell(answer.replace("int_…", interrupt_id), url, alice.token);
  const second = await leaseOf(lease, answering);
  expect(second.delegation.id).toBe(first.delegation.id);
  expect(second.delegation.history.at(-1)).toMatchObject({
    metadata: { decision: "approve", by: "caller:alice" },
    parts: [{ text: "go ahead" }],
  });
  await scout.reply(second.lease_id, { text: "3" });
  const answered = eventsIn(await answering);
  expect(answered.at(-1)).toMatchObject({ type: "RUN_FINISHED", threadId: "t1", runId: "r2" });
  expect(answered.at(-1).result.reply.parts).toEqual([{ text: "3" }]);
});

test("the settings attach, approve in advance and cancel", async () => {
  const { url, alice, client, lease, scout } = await setup();
  const ui = client("t");
  ui.say("go");
  const {
    run: running,
    lease_id,
    delegation,
  } = await started(ui, lease, JSON.parse(snippet("json", "auto_approve")));
  await scout.interrupt(lease_id, { text: "Deploy?", action: { name: "deploy" } });
  await scout.interrupt((await lease()).lease_id, { text: "Delete?", action: { name: "fs.delete" } });
  const [, first, , second] = (await lease()).delegation.history;
  for (const answer of [first, second]) {
    expect(answer.metadata).toMatchObject({ decision: "approve", by: "caller:alice", auto: true });
  }

  const attached = agUi(url, alice.token, "t");
  const watching = attached.run(JSON.parse(snippet("json", '"attach"')));
  await until(() => attached.seen("ACTIVITY_SNAPSHOT"), { what: "the snapshots" });
  expect(attached.errand().delegation_id).toBe(delegation.id);

  const canceled = await client("t").run(JSON.parse(snippet("json", '"cancel"')));
  for (const { error, last: end } of [canceled, await watching, await running]) {
    expect([error, end.outcome]).toEqual([undefined, { type: "cancelled" }]);
  }
  expect((await alice.get(delegation.id)).body).toMatchObject({
    state: "canceled",
    error: { message: expect.stringContaining("found it myself") },
  });
});

test("the table of settings has all of them", () => {
  const [, table = ""] = /^## Settings$(.*?)^## /ms.exec(PAGE) ?? [];
  const cells = [...table.matchAll(/^\| (`.*?) \|/gm)].map(([, cell = ""]) => cell);
  const named = cells.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name));
  expect(named.sort()).toEqual(Object.keys(agUiPropsSchema.shape).sort());
});
