/** Programs in docs/library.md run: how a token is created, and how a handler forwards the questions of a part. */
import { execFile, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { Agent, Delegator, textOf } from "../../src/index.ts";
import { as, client, OPERATOR, startBroker } from "../support/broker.ts";
import { freshDir } from "../support/program.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PAGE = readFileSync(join(ROOT, "docs/library.md"), "utf8");

/** The program of the page that contains the words, as a file. */
function program(words: string): string {
  const all = [...PAGE.matchAll(/```ts\n(.*?)```/gs)].map(([, code = ""]) => code);
  const [code = ""] = all.filter((one) => one.includes(words) && one.includes('"errand-broker"'));
  expect(code).not.toBe("");
  const file = join(freshDir(), "program.mts");
  writeFileSync(file, code.replace('"errand-broker"', JSON.stringify(join(ROOT, "src/index.ts"))));
  return file;
}

test("the operator creates a token", async () => {
  const { url } = await startBroker();
  const { stdout } = await promisify(execFile)("node", ["--import", "tsx", program("createToken")], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, ERRAND_URL: url, ERRAND_TOKEN: OPERATOR },
  });
  const [id = "", token = ""] = stdout.trim().split(" ");
  expect((await client(url, token).call("GET", "/v1/delegations")).status).toBe(200);
  expect((await client(url, token).call("GET", "/v1/tokens")).status).toBe(403);
  const [found] = (await client(url).call("GET", "/v1/tokens")).body.tokens;
  expect(found).toMatchObject({ id, principal: "caller:alice" });
}, 60_000);

test("the handler forwards the questions of its part", async () => {
  const { url } = await startBroker();
  for (const name of ["editor", "scribe"]) await client(url).agent(name);
  const tokenOf = async (principal: string) => (await as(url, principal)).token;
  const scribe = new Agent({ agent: "scribe", url, token: await tokenOf("agent:scribe") }, async (work) => {
    const [style, go] = await work.askAll([
      { requestId: "style", text: "Which style?", options: ["plain", "ornate"] },
      { requestId: "go", text: "Print it?", action: { name: "print", arguments: { copies: 2 } }, edit: true },
    ]);
    const { decision } = await work.ask("Really?");
    return `${style?.text} ${go?.decision} ${JSON.stringify(go?.data)} ${decision}`;
  });
  const running = scribe.run();
  const editor = spawn("node", ["--import", "tsx", program("askAll(")], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, ERRAND_URL: url, ERRAND_TOKEN: await tokenOf("agent:editor") },
    stdio: ["ignore", "ignore", "inherit"],
  });
  onTestFinished(async () => {
    editor.kill();
    await scribe.stop();
    await running;
  });
  const alice = new Delegator({ url, token: await tokenOf("caller:alice") });
  const { id } = await alice.delegate({ target: "editor", task: "a page" });
  const first = await alice.wait(id);
  expect(first.interrupt?.requests).toMatchObject([
    { message: { parts: [{ text: "Which style?" }] }, options: ["plain", "ornate"] },
    { action: { name: "print", arguments: { copies: 2 } } },
  ]);
  const [style, go] = first.interrupt?.requests.map(({ request_id }) => request_id) ?? [];
  await alice.answer(id, first.interrupt?.id ?? null, {
    answers: { [style ?? ""]: "plain", [go ?? ""]: { decision: "approve", data: { copies: 3 } } },
  });
  const second = await alice.wait(id);
  expect(second.interrupt?.requests).toMatchObject([{ message: { parts: [{ text: "Really?" }] } }]);
  await alice.approve(id);
  const ended = await alice.wait(id);
  expect([ended.state, ended.reply && textOf(ended.reply)]).toEqual([
    "completed",
    'plain approve {"copies":3} approve',
  ]);
}, 60_000);
