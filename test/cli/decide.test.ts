/** Deciding about many: shown first, confirmed, and only as shown. */
import { expect, test } from "vitest";
import { delegationSchema } from "../../src/schema/delegation.ts";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { run as runHere, type Setting } from "./fake-host.ts";
import { lines } from "./real.ts";

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
      ...setting,
      env: { url, token: OPERATOR },
      childEnv: { PATH: process.env.PATH, NO_COLOR: "1" },
    });
  const stateOf = async ({ id }: { id: string }) => (await api.get(id)).body.state;
  return { url, api, asking, run, stateOf };
}

test("many are shown with agent, delegator, task and question, and sent once that is confirmed", async () => {
  const { asking, run, stateOf } = await setup();
  const first = await asking("deployer", { text: "Deploy?", options: ["approve", "deny"] });
  const second = await asking("scout", { text: "Delete\u001b[2J it?" }, "tidy up");
  const which = await asking("scout", { text: "Which?", options: ["main", "next"] });
  const several = await asking("scout", { requests: [{ text: "a" }, { text: "b" }] });
  const credential = await asking("scout", { kind: "auth", text: "A token?" });

  const refused = await run(["approve", "--all"], { tty: TERMINAL, stdin: "n\n" });
  expect([refused.code, refused.stdout]).toEqual([64, ""]);
  expect(refused.stderr).toContain(
    `Deploy? (approve | deny)\n  ${first.id}  deployer, for operator: release 7\n`,
  );
  expect(refused.stderr).toContain(`Delete it?\n  ${second.id}  scout, for operator: tidy up\n`);
  expect(refused.stderr).toContain("Approve these 2? [y/N]");
  expect(refused.stderr).toContain("Nothing was sent.");
  expect(await stateOf(first)).toBe("input_required");

  const done = await run(["approve", "--all"], { tty: TERMINAL, stdin: "y\n" });
  expect([done.code, done.stdout]).toEqual([0, `approved ${first.id}\napproved ${second.id}\n`]);
  expect(await stateOf(first)).toBe("submitted");
  for (const left of [which, several]) expect(await stateOf(left)).toBe("input_required");
  expect(await stateOf(credential)).toBe("auth_required");
  expect((await run(["deny", "--all"], { tty: TERMINAL })).stderr).toContain("nothing to deny.");
});

test("without a terminal nothing is decided about many unless --yes says so", async () => {
  const { api, asking, run, stateOf } = await setup();
  const ids = [await asking("deployer", { text: "1?" }), await asking("deployer", { text: "2?" })];
  const other = await asking("scout", { text: "3?" });
  for (const args of [
    ["approve", "--all"],
    ["approve", ...ids.map(({ id }) => id)],
  ]) {
    for (const tty of [{}, { ...TERMINAL, stdin: false }]) {
      const { code, stderr } = await run(args, { tty });
      expect([code, stderr]).toEqual([64, expect.stringContaining("--yes")]);
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
  expect(lines(delegationSchema, stdout).map(({ id }) => id)).toEqual(ids.map(({ id }) => id));
  expect((await api.get(ids[0]?.id ?? "")).body.history.at(-1)).toMatchObject({
    parts: [{ text: "no" }],
    metadata: { decision: "deny" },
  });
  expect(await stateOf(other)).toBe("input_required");
});

test("what cannot be decided is named, and does not keep the others", async () => {
  const { api, asking, run } = await setup();
  const fine = await asking("deployer", { text: "1?" });
  const several = await asking("deployer", { requests: [{ text: "a" }, { text: "b" }] });
  const over = await asking("deployer", { text: "2?" });
  await api.cancel(over.id);
  const { code, stdout, stderr } = await run(["approve", several.id, over.id, fine.id, "--yes"]);
  expect([code, stdout]).toEqual([0, `approved ${fine.id}\n`]);
  expect(stderr).toContain(`left out ${several.id}: it asks several things at once.`);
  expect(stderr).toContain(`left out ${over.id}: it is canceled.`);
});

test.each([
  [["approve"], "there is no id"],
  [["approve", "--all", "dlg_0_1"], "either ids or --all"],
  [["deny", "dlg_0_1", "--target", "scout"], "go with --all"],
  [["deny", "dlg_0_1", "dlg_0_2", "--interrupt", "int_1"], "goes with one id"],
])("%o is refused before anything is sent", async (args, why) => {
  const { code, stderr } = await runHere(args, { env: { url: "http://127.0.0.1:9", token: "t" } });
  expect([code, stderr]).toEqual([64, expect.stringContaining(why)]);
});
