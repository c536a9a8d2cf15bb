/** `errand agent` and `errand token` against a real gateway. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { z } from "zod";
import { agentChangeSchema, agentSchema } from "../../../src/schema/agent.ts";
import { auditEntrySchema } from "../../../src/schema/audit.ts";
import { newTokenSchema, tokenSchema } from "../../../src/schema/token.ts";
import { as } from "../../support/broker.ts";
import { lines, problemIn, setup } from "./cli.ts";

test("an agent is created, shown, listed and deleted", async () => {
  const { run, api, dir } = await setup();
  const spec = { description: "from a file", limits: { max_attempts: 7, lease_seconds: 5 } };
  writeFileSync(join(dir, "agent.json"), JSON.stringify(spec));
  const put = await run(["agent", "put", "scout", "--file", join(dir, "agent.json"), "--lease", "30"]);
  expect(put).toMatchObject({ code: 0, stderr: "" });
  expect(put.stdout).toMatch(/^description +from a file$/m);
  expect(put.stdout).toMatch(/^lease +30 s, at most 7 attempts$/m);
  expect(put.stdout).toMatch(/\ncreated scout\n$/);
  const json = await run(["agent", "put", "second", "--accepts-from", "caller:*", "agent:scout", "--json"]);
  expect(lines(agentChangeSchema, json.stdout)).toMatchObject([
    { accepts_from: ["caller:*", "agent:scout"] },
  ]);

  const { stdout: shown } = await run(["agent", "get", "scout"]);
  expect(shown).toMatch(/^agent +scout$/m);
  expect(shown).toMatch(/^queue +0 queued, 0 delayed$/m);
  const one = await run(["agent", "get", "scout", "--json"]);
  expect(lines(agentSchema, one.stdout)).toMatchObject([{ name: "scout" }]);
  expect((await run(["agent", "list"])).stdout).toMatch(
    /^NAME +PRESENCE.*\nscout +offline .*\nsecond +offline/,
  );
  const all = await run(["agent", "list", "--json"]);
  expect(lines(agentSchema, all.stdout).map(({ name }) => name)).toEqual(["scout", "second"]);

  await api.delegate("scout");
  const queued = await run(["agent", "get", "scout"]);
  expect(queued.stdout).toMatch(/^queue +1 queued, the oldest for \d+ s, 0 delayed$/m);
  const busy = await run(["agent", "delete", "scout"]);
  expect([busy.code, busy.stdout]).toEqual([64, ""]);
  expect(busy.stderr).toContain("or pass --force");
  expect(await run(["agent", "delete", "scout", "--force"])).toEqual({
    code: 0,
    stdout: "deleted scout\n",
    stderr: "",
  });
  const gone = await run(["agent", "delete", "second", "--json"]);
  expect(lines(z.strictObject({ deleted: z.string() }), gone.stdout)).toEqual([{ deleted: "second" }]);
  const unknown = await run(["agent", "get", "scout", "--json"]);
  expect([unknown.code, problemIn(unknown.stderr).code]).toEqual([66, "agent_unknown"]);
  expect((await run(["agent", "lst"])).stderr).toBe(
    "errand: unknown command 'lst' (Did you mean list?). See 'errand agent --help'.\n",
  );
});

test("put --serial-by and --sticky order the work of a conversation, and none undoes it", async () => {
  const { run } = await setup();
  const put = await run(["agent", "put", "scout", "--serial-by", "context", "--sticky", "5m"]);
  expect(put).toMatchObject({ code: 0, stderr: "" });
  expect(put.stdout).toMatch(/^conversation +one at a time, kept for its last worker for 5 min$/m);
  const none = await run([
    "agent",
    "put",
    "scout",
    "--serial-by",
    "none",
    "--reset",
    "sticky_seconds",
    "--json",
  ]);
  expect(lines(agentChangeSchema, none.stdout)).toMatchObject([{ serial_by: null, sticky_seconds: null }]);
  const wrong = await run(["agent", "put", "scout", "--sticky", "2h"]);
  expect(wrong.code).not.toBe(0);
  expect(wrong.stderr).toContain("sticky_seconds");
});

test("put --risk says how risky actions are, and replaces the rules before", async () => {
  const { run } = await setup();
  const put = await run(["agent", "put", "scout", "--risk", "deploy=high", "fs.*=medium"]);
  expect(put).toMatchObject({ code: 0, stderr: "" });
  expect(put.stdout).toMatch(/^risks +deploy=high fs\.\*=medium$/m);
  const again = await run(["agent", "put", "scout", "--risk", "a=b=low", "--json"]);
  expect(lines(agentChangeSchema, again.stdout)).toMatchObject([{ risks: [{ action: "a=b", risk: "low" }] }]);
  for (const wrong of ["deploy", "deploy=huge", "=low", "*.fs=low"]) {
    const { code, stderr } = await run(["agent", "put", "scout", "--risk", wrong]);
    expect([wrong, code]).toEqual([wrong, 64]);
    expect(stderr).toContain("deploy=high");
  }
  const reset = await run(["agent", "put", "scout", "--reset", "risks"]);
  expect(reset.stdout).toMatch(/\nreset to the default: risks\n$/);
});

test("put --weight gives delegators turns, and says what a weight is", async () => {
  const { run } = await setup();
  const put = await run(["agent", "put", "scout", "--weight", "caller:ci=3", "agent:lead=10"]);
  expect(put).toMatchObject({ code: 0, stderr: "" });
  expect(put.stdout).toMatch(/^weights +caller:ci=3 agent:lead=10$/m);
  for (const wrong of ["caller:ci", "caller:ci=0", "caller:ci=101", "ci=2", "caller:ci=1.5"]) {
    const { code, stderr } = await run(["agent", "put", "scout", "--weight", wrong]);
    expect([wrong, code]).toEqual([wrong, 64]);
    expect(stderr).toContain("caller:ci=3");
  }
  const reset = await run(["agent", "put", "scout", "--reset", "delegator_weights"]);
  expect(reset.stdout).toMatch(/\nreset to the default: delegator_weights\n$/);
});

test("put --priority-ageing says how long work waits before its priority counts as higher", async () => {
  const { run } = await setup();
  const put = await run(["agent", "put", "scout", "--priority-ageing", "1h"]);
  expect(put.stdout).toMatch(/^ageing +a priority higher for every 1 h of waiting$/m);
  const reset = await run(["agent", "put", "scout", "--reset", "priority_ageing_seconds"]);
  expect(reset.stdout).toMatch(/\nreset to the default: priority_ageing_seconds\n$/);
});

test("put keeps a restriction that it does not name; --reset and --replace remove it and say so", async () => {
  const { run } = await setup();
  await run(["agent", "put", "locked", "--accepts-from", "caller:ci", "--max-working", "1"]);
  const put = await run(["agent", "put", "locked", "--interrupt-ttl", "259200"]);
  expect(put).toMatchObject({ code: 0, stderr: "" });
  expect(put.stdout).toMatch(/^accepts from +caller:ci$/m);
  expect(put.stdout).toMatch(/^limits +\d+ queued, 1 running$/m);
  expect(put.stdout).toMatch(/\nchanged limits.interrupt_ttl_seconds\n$/);
  const same = await run(["agent", "put", "locked", "--interrupt-ttl", "259200"]);
  expect(same.stdout).toMatch(/\nnothing changed\n$/);
  const reset = await run(["agent", "put", "locked", "--lease", "30", "--reset", "limits.max_working"]);
  expect(reset.stdout).toMatch(/\nchanged limits.lease_seconds\nreset to the default: limits.max_working\n$/);
  expect(reset.stdout).toMatch(/^accepts from +caller:ci$/m);
  expect((await run(["agent", "put", "locked", "--reset", "limit"])).code).toBe(64);
  const replaced = await run(["agent", "put", "locked", "--replace", "--description", "open", "--json"]);
  expect(lines(agentChangeSchema, replaced.stdout)).toMatchObject([
    {
      created: false,
      accepts_from: ["*"],
      changed: ["description"],
      reset: ["accepts_from", "limits.lease_seconds", "limits.interrupt_ttl_seconds"],
    },
  ]);
});

test("the audit log and an agent's workers are printed as tables and as JSON lines", async () => {
  const { run, api } = await setup();
  await api.agent("scout");
  await api.call("POST", "/v1/agents/scout/pause");
  expect((await run(["audit"])).stdout).toMatch(
    /^AGE +BY +ACTION +SUBJECT +DETAILS\n\S+ +operator +agent.pause +scout +\{\}\n\S+ +operator +agent.create +scout/,
  );
  const one = await run(["audit", "--action", "agent.create", "--limit", "1", "--json"]);
  expect(lines(auditEntrySchema, one.stdout)).toMatchObject([{ action: "agent.create", subject: "scout" }]);
  await api.call("POST", "/v1/agents/scout/resume");
  const { id } = (await api.delegate("scout")).body;
  await api.lease("scout", { worker_id: "w1" });
  expect((await run(["agent", "workers", "scout"])).stdout).toMatch(
    new RegExp(`^WORKER +SEEN +PRESENCE +DELEGATIONS\nw1 +\\S+ +working +${id}\n$`),
  );
});

test("a token is created, works, is listed without its secret, and is revoked", async () => {
  const { run, url } = await setup();
  const made = await run(["token", "create", "caller:ann"]);
  expect(made).toMatchObject({ code: 0, stderr: "" });
  expect(made.stdout).toMatch(/^errand_\S+\n$/);
  const token = made.stdout.trim();
  expect((await run(["list"], { token })).code).toBe(0);
  const json = await run(["token", "create", "viewer:wall", "--expires", "60", "--json"]);
  expect(lines(newTokenSchema, json.stdout)).toMatchObject([{ principal: "viewer:wall" }]);

  const listed = await run(["token", "list", "--json"]);
  const tokens = lines(tokenSchema, listed.stdout);
  expect(tokens.map(({ principal }) => principal).sort()).toEqual(["caller:ann", "viewer:wall"]);
  const id = tokens.find(({ principal }) => principal === "caller:ann")?.id ?? "";
  expect((await run(["token", "list"])).stdout).toContain(`${id}  caller:ann`);
  expect((await run(["token", "list"])).stdout).not.toContain(token);
  expect(await run(["token", "revoke", id])).toEqual({ code: 0, stdout: `revoked ${id}\n`, stderr: "" });
  const revoked = await run(["list"], { token });
  expect(revoked.code).toBe(77);
  expect(revoked.stderr).toContain("Set ERRAND_TOKEN or --token");
  const again = await run(["token", "revoke", id, "--json"]);
  expect([again.code, problemIn(again.stderr).code]).toEqual([66, "not_found"]);

  const { token: caller } = await as(url, "caller:bob");
  const forbidden = await run(["token", "list"], { token: caller });
  expect(forbidden.code).toBe(77);
  expect(forbidden.stderr).toContain("'errand doctor' shows whose token you use");
});

test("a paused agent gets no work until it is resumed", async () => {
  const { api, run, url } = await setup();
  await api.agent("scout");
  const { id } = (await api.delegate("scout")).body;
  expect(await run(["agent", "pause", "scout"])).toEqual({ code: 0, stdout: "paused scout\n", stderr: "" });
  expect((await run(["agent", "get", "scout"])).stdout).toContain("'errand agent resume scout'");
  expect((await api.lease("scout", { wait_seconds: 0 })).body.leases).toEqual([]);
  const resumed = await run(["agent", "resume", "scout", "--json"]);
  expect(lines(agentSchema, resumed.stdout)).toMatchObject([{ name: "scout", paused: false }]);
  expect((await api.lease("scout")).body.leases).toMatchObject([{ delegation: { id } }]);
  const { token } = await as(url, "caller:bob");
  expect((await run(["agent", "pause", "scout"], { token })).code).toBe(77);
});

test("put takes a server's credentials from a file, stdin or the environment, and no output shows them", async () => {
  const { run, dir, gateway } = await setup();
  const secret = "kanarienvogel7f3a";
  const stored = async () => (await gateway.broker.redis.hget("{errand:0}:agent:scout", "credentials")) ?? "";
  writeFileSync(join(dir, "token"), `${secret}-file\n`);
  writeFileSync(join(dir, "utf16"), Buffer.from(`\uFEFF${secret}`, "utf16le"));
  writeFileSync(join(dir, "prefixed"), `Bearer ${secret}`);
  writeFileSync(
    join(dir, "basic.json"),
    JSON.stringify({ scheme: "basic", username: "u", password: secret }),
  );
  writeFileSync(join(dir, "bad.json"), `{"scheme": "bearer", "token": ${secret}}`);
  writeFileSync(join(dir, "agent.json"), JSON.stringify({ delivery: { mode: "poll" } }));
  const outputs: string[] = [];
  const put = async (args: readonly string[], options: Parameters<typeof run>[1] = {}) => {
    const inDir = args.map((one) => (/\.json$|^(?:token|utf16|prefixed)$/.test(one) ? join(dir, one) : one));
    const result = await run(["agent", "put", "scout", ...inDir], options);
    outputs.push(result.stdout, result.stderr);
    return result;
  };
  const to = ["--push-to", "https://a2a.example/scout"];
  const first = await put([...to, "--push-token-file", "token"]);
  expect(first.stdout).toMatch(/^pushed to +https:\/\/a2a.example\/scout, with credentials$/m);
  expect(await stored()).toContain(`${secret}-file`);
  await put(["--push-token-file", "-"], { input: `${secret}-stdin` });
  expect(await stored()).toContain(`${secret}-stdin`);
  await put(["--push-token-env"], { env: { ERRAND_REMOTE_TOKEN: `${secret}-env` } });
  expect(await stored()).toContain(`${secret}-env`);
  const json = await put(["--push-credentials-file", "basic.json", "--json"]);
  expect(lines(agentChangeSchema, json.stdout)).toMatchObject([
    { delivery: { credentials_set: true }, changed: ["delivery.credentials"] },
  ]);
  expect(await stored()).toContain("basic");
  expect((await put(to, { env: { ERRAND_REMOTE_TOKEN: secret } })).stdout).toMatch(/\nnothing changed\n$/);
  const reset = await put(["--reset", "delivery.credentials", ...to]);
  expect(reset.stdout).toMatch(/\nreset to the default: delivery.credentials\n$/);
  expect(reset.stdout).toMatch(/^pushed to +https:\/\/a2a.example\/scout$/m);
  expect(await stored()).toBe("");
  for (const [args, said] of [
    [
      ["--push-token-file", "token", "--push-token-env"],
      "given twice: --push-token-file and --push-token-env",
    ],
    [["--push-token-env"], "ERRAND_REMOTE_TOKEN is not set"],
    [["--push-token-file", "no-such-file"], "cannot read the token file no-such-file"],
    [["--push-token-file", "utf16"], "utf16 is UTF-16 text. Save it as UTF-8"],
    [["--push-token-file", "prefixed"], "prefixed begins with 'Bearer'. Pass only"],
    [["--push-credentials-file", "bad.json"], "bad.json is not JSON"],
    [["--push-credentials-file", "agent.json"], "contains no valid credentials: scheme:"],
  ] as const) {
    const { code, stderr } = await put(args);
    expect([code, stderr]).toEqual([64, expect.stringContaining(said)]);
  }
  const merged = await put(["--file", "agent.json", ...to, "--push-token-file", "token"]);
  expect(merged.stdout).toContain("with credentials");
  expect((await run(["agent", "get", "scout"])).stdout).toContain(", with credentials");
  expect(outputs.join("")).not.toContain(secret);
});

test("a token's budgets are shown to the operator, and with what was used to its owner", async () => {
  const { run } = await setup();
  const amounts = ["--budget-day", "cost=20usd,tokens=2000000", "--budget-month", "cost=300USD"];
  const { stdout } = await run(["token", "create", "caller:ann", ...amounts]);
  const budgets = {
    day: { cost: 20, currency: "USD", tokens: 2_000_000 },
    month: { cost: 300, currency: "USD" },
  };
  const listed = await run(["token", "list", "--json"]);
  expect(lines(tokenSchema, listed.stdout)).toMatchObject([{ principal: "caller:ann", budgets }]);
  expect((await run(["token", "list", "--wide"])).stdout).toContain(
    "day 2,000,000 tokens, 20 USD; month 300 USD",
  );
  const status = await run(["status"], { token: stdout.trim() });
  expect(status.stdout).toMatch(/^budgets +day 0 of 2,000,000 tokens, 0 of 20 USD; month 0 of 300 USD$/m);
  const wrong = await run(["token", "create", "caller:ann", "--budget-day", "time=3h"]);
  expect([wrong.code, wrong.stdout]).toEqual([64, ""]);
});
