/** `errand demo` against a real gateway: it tells each step, and leaves nothing behind. */
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { z } from "zod";
import { as, OPERATOR } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { lines, setup } from "../broker/cli.ts";
import { run as runHere, start as startHere } from "../fake-host.ts";

const STEPS = [
  /^1\. Create an agent, (demo-[0-9a-f]{6})\.\n {3}\$ errand agent put demo-/m,
  /^2\. Work for it.*\n {3}\$ errand work --agent demo-/m,
  /^3\. Delegate a task: dlg_\w+\.\n {3}\$ errand delegate demo-/m,
  /^4\. Watch it\.\n {3}\$ errand watch dlg_/m,
  /^ {3}picked up by .*\n {3}progress: 1\/3 .*\n {3}progress: 2\/3 .*\n {3}progress: 3\/3 /m,
  /^5\. It asks for your approval.*\n {3}\$ errand approve dlg_/m,
  /^ {3}It ends: completed after .*$/m,
  /^6\. Clean up: .*\n {3}\$ errand agent delete demo-\w+\n$/m,
];

async function isClean({ api }: Awaited<ReturnType<typeof setup>>) {
  expect((await api.call("GET", "/v1/agents")).body.agents).toEqual([]);
  expect((await api.call("GET", "/v1/delegations")).body.delegations).toEqual([]);
}

test("in a clone, its commands begin with npx", async () => {
  const { url } = await setup();
  const { stdout } = await runHere(["demo", "--yes"], {
    env: { url, token: OPERATOR },
    command: "./errand",
  });
  expect(stdout).toContain("   $ ./errand agent put demo-");
});

test("tells each step with its command, approves by itself, and cleans up", async () => {
  const broker = await setup();
  const { code, stdout, stderr } = await broker.run(["demo", "--yes"]);
  expect([code, stderr]).toEqual([0, ""]);
  for (const step of STEPS) expect(stdout).toMatch(step);
  expect(stdout).toContain("approved because of --yes");
  expect(stdout).toContain('"published notes.md"');
  await isClean(broker);

  const json = await broker.run(["demo", "--json"]);
  const told = lines(z.object({ step: z.number(), text: z.string() }), json.stdout);
  expect(told.at(-1)).toMatchObject({ step: 6 });
  expect(told.map(({ text }) => text)).toContain(
    "approved by itself, because there is no terminal to ask on",
  );
});

test("asks the person at a terminal, and takes a no, or the answer that somebody else gives", async () => {
  const broker = await setup();
  const { url, api } = broker;
  const atTerminal = () => {
    const stdin = new PassThrough();
    const run = startHere(["demo"], {
      env: { url, token: OPERATOR },
      stdin,
      tty: { stdin: true, stderr: true },
    });
    const asked = until(() => run.stderr().includes("answer ("), { what: "the question" });
    return { stdin, run, asked };
  };
  const no = atTerminal();
  await no.asked;
  expect(no.run.stderr()).toContain("action: publish");
  no.stdin.write("deny\n");
  expect(await no.run.done).toBe(0);
  expect(no.run.stdout()).toContain("kept notes.md as a draft");

  const elsewhere = atTerminal();
  await elsewhere.asked;
  const [{ id, interrupt }] = (await api.call("GET", "/v1/delegations")).body.delegations;
  await api.answer(id, interrupt.id, { decision: "approve" });
  expect(await elsewhere.run.done).toBe(0);
  expect(elsewhere.run.stdout()).toContain("published notes.md");

  const closed = atTerminal();
  await closed.asked;
  closed.stdin.end();
  expect(await closed.run.done).toBe(64);
  expect(closed.run.stderr()).toContain("no answer was given");
  await isClean(broker);
});

test("Ctrl-C cleans up; without a broker or the right to create agents, it says what to do", async () => {
  const broker = await setup();
  const { run, start, url, dir } = broker;
  const demo = start(["demo"]);
  await until(() => demo.stdout().includes("picked up by"), { what: "the work" });
  demo.child.kill("SIGINT");
  expect(await demo.ended()).toBe(130);
  expect(demo.stdout()).toContain("Clean up");
  await isClean(broker);
  const { token } = await as(url, "caller:alice");
  expect((await run(["demo"], { token })).code).toBe(77);
  const alone = await startHere(["demo"], { env: { dataDir: `${dir}/none` } });
  expect(await alone.done).toBe(75);
  expect(alone.stderr()).toContain("errand serve");
});
