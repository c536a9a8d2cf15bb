/** Something else answers in the broker's place: what the commands of a terminal do, and say. */
import { mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { as, client, OPERATOR, startBroker } from "../../support/broker.ts";
import { FOREIGN_ANSWERS, startFront } from "../../support/front.ts";
import { until } from "../../support/until.ts";
import { run, start } from "../fake-host.ts";

const foreign = (kind: string) => {
  const answer = FOREIGN_ANSWERS[kind];
  if (!answer) throw new Error(`there is no '${kind}'`);
  return answer;
};

async function setup() {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const front = await startFront(url);
  return { api, url, front, env: { url: front.url, token: OPERATOR } };
}

test("no foreign answer ends a worker or kills its command; the broker's refusal of the token does", async () => {
  const { api, url, front } = await setup();
  const { token, tokenId } = await as(url, "agent:scout");
  const dir = mkdtempSync(join(tmpdir(), "errand-foreign-"));
  const script = `echo up; until [ -e ${dir}/go ]; do sleep 0.05; done; echo done >> ${dir}/ends; echo done`;
  const worker = start(["work", "--agent", "scout", "--", "sh", "-c", script], {
    env: { url: front.url, token },
  });
  const { id } = (await api.delegate("scout")).body;
  await until(async () => (await api.get(id)).body.progress?.message === "up");
  for (const kind of ["401 of another broker", "403 of a firewall", "404 with another broker's lost lease"]) {
    front.replace(foreign(kind));
    await until(() => front.count("/heartbeat") >= 1, { what: kind });
  }
  writeFileSync(join(dir, "go"), "");
  await until(() => front.count("/reply") >= 1);
  front.restore();
  await until(async () => (await api.get(id)).body.state === "completed");
  expect((await api.get(id)).body).toMatchObject({ attempt: 1, reply: { parts: [{ text: "up\ndone" }] } });
  expect(readdirSync(dir).sort()).toEqual(["ends", "go"]);
  await until(() => / completed in /.test(worker.stderr()));
  front.replace(foreign("302 to a sign-in"));
  await until(() => front.count("/leases") >= 2);
  await api.call("DELETE", `/v1/tokens/${tokenId}`);
  front.restore();
  expect(await worker.done).toBe(77);
  expect(worker.stderr()).toMatch(/answered with HTTP \d+/);
});

test.each([
  {
    options: [],
    says: /\. If it does not answer by (.+), running work is stopped \(--keep-running prevents that\)\n/,
  },
  { options: ["--keep-running"], says: /'default backend - 404'[^'\n]*\n/ },
])(
  "a busy worker says once who answers, and when its command is stopped: $options",
  async ({ options, says }) => {
    const { api, front, env } = await setup();
    const dir = mkdtempSync(join(tmpdir(), "errand-foreign-"));
    const script = `echo up; until [ -e ${dir}/go ]; do sleep 0.05; done`;
    const argv = ["work", "--agent", "scout", "--once", ...options, "--", "sh", "-c", script];
    const worker = start(argv, { env });
    const { id } = (await api.delegate("scout")).body;
    await until(async () => (await api.get(id)).body.progress?.message === "up");
    front.replace(foreign("404 of an ingress"));
    const leased = Date.now();
    await until(() => front.count("/heartbeat") >= 4);
    const [said = "", at] = says.exec(worker.stderr()) ?? [];
    expect(said, worker.stderr()).not.toBe("");
    expect(worker.stderr().split(`${front.url} answered with HTTP 404`)).toHaveLength(2);
    if (at) expect(Date.parse(at) - leased).toBeGreaterThan(100_000);
    front.restore();
    await until(() => worker.stderr().includes("the broker is available again"), {
      what: "the end of the outage",
    });
    writeFileSync(join(dir, "go"), "");
    expect(await worker.done).toBe(0);
  },
);

test("get --wait goes on after foreign answers", async () => {
  const { api, front, env } = await setup();
  const { id } = (await api.delegate("scout")).body;
  const waiting = start(["get", id, "--wait"], { env });
  for (const kind of ["404 of an ingress"]) {
    // The first answers are those of the broker.
    if (kind === "404 of an ingress") await until(() => waiting.stderr() !== "");
    front.replace(foreign(kind));
    await until(() => front.count(`/${id}`) >= 1, { what: kind });
  }
  front.restore();
  const { leases } = (await api.lease("scout")).body;
  await api.reply(leases[0].lease_id, { text: "here" });
  expect(await waiting.done).toBe(0);
  expect(waiting.stdout()).toContain("here");
});

test.each([
  [["work", "--agent", "scout", "--", "cat"]],
  [["get", "dlg_0_01hzzzzzzzzzzzzzzzzzzzzzzz", "--wait"]],
  [["list"]],
])("%j at a wrong address ends at once with 78, and says what answers there", async (argv) => {
  const { front, env } = await setup();
  front.replace(foreign("404 of an ingress"));
  const { code, stderr } = await run(argv, { env });
  expect(stderr).toContain(`${front.url} answered with HTTP 404, text/plain, 'default backend - 404'`);
  expect(code).toBe(78);
});

test.each([
  { kind: "404 of an ingress", mayBeAccepted: false },
  { kind: "200 with empty JSON", mayBeAccepted: true },
])("delegate at $kind says first what to check, and names the key where it is needed", async (one) => {
  const { front, env } = await setup();
  front.replace(foreign(one.kind));
  const file = join(mkdtempSync(join(tmpdir(), "errand-foreign-")), "tasks.jsonl");
  writeFileSync(file, '{"task":"x"}');
  for (const args of [["x"], ["--batch", file]]) {
    const { stderr } = await run(["delegate", "scout", ...args, "--idempotency-key", "k1"], { env });
    expect(stderr).toMatch(
      one.mayBeAccepted ? /\. Check that the URL .* Run it again with / : /\. Check that the URL/,
    );
    expect(stderr.includes("--idempotency-key k1")).toBe(one.mayBeAccepted);
  }
});

test("errand mcp answers each call during an outage, and goes on with the session after it", async () => {
  const { front, env } = await setup();
  const stdin = new PassThrough();
  const bridge = start(["mcp"], { env, stdin });
  const answers = () =>
    bridge
      .stdout()
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  const ask = async (id: number, method: string, params: object = {}) => {
    stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    return until(() => answers().find((answer) => answer.id === id));
  };
  const info = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } };
  expect((await ask(1, "initialize", info)).result.serverInfo.name).toBe("errand");
  let id = 1;
  for (const kind of ["404 of an ingress", "401 of another broker", "200 with a page", "302 to a sign-in"]) {
    front.replace(foreign(kind));
    id += 1;
    const { error } = await ask(id, "tools/list");
    expect([kind, error.data]).toEqual([
      kind,
      expect.objectContaining({ code: "invalid_response", category: "TRANSPORT", retryable: true }),
    ]);
    front.restore();
    id += 1;
    expect((await ask(id, "tools/list")).result.tools.length).toBeGreaterThan(3);
  }
  expect(bridge.stderr()).not.toMatch(/token/i);
  stdin.end();
  await bridge.done;
});
