/** `errand get` shows questions, answers, the worker, and what the delegation waits for. */
import { expect, test } from "vitest";
import { localTime } from "../../../src/cli/show/time.ts";
import { as, client, OPERATOR, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { run as runHere, start } from "../fake-host.ts";

async function setup() {
  const { url, clock, gateway } = await startBroker();
  const api = client(url);
  await api.agent("scout", { backoff: { initial_ms: 600_000, max_ms: 600_000, jitter: 0 } });
  const { id } = (await api.delegate("scout")).body;
  const next = async () =>
    (await api.lease("scout", { wait_seconds: 0, worker_id: "host-7" })).body.leases[0]?.lease_id;
  const get = async (...more: string[]) => {
    const { code, stdout, stderr } = await runHere(["get", id, ...more], { env: { url, token: OPERATOR } });
    expect([code, stderr]).toEqual([0, ""]);
    return stdout;
  };
  const row = async (name: string) => new RegExp(`^${name} +(.*)$`, "m").exec(await get())?.[1];
  return { url, clock, gateway, api, id: String(id), next, get, row };
}

test("of a finished delegation: questions, answers with author and time, the worker, the duration", async () => {
  const { url, api, id, next, get } = await setup();
  const ann = await as(url, "approver:ann");
  const first = (await api.interrupt(await next(), { request_id: "a", text: "Deploy?" })).body.interrupt_id;
  expect(await get()).not.toMatch(/^question +Deploy/m);
  await ann.answer(id, first, { decision: "approve", text: "but\u001b[2J gently" });
  await api.message(id, "in French");
  const auth = { kind: "auth", request_id: "b", text: "A token?" };
  const second = (await api.interrupt(await next(), auth)).body.interrupt_id;
  await api.answer(id, second, { text: "geheimnis" });
  await api.reply(await next());

  const said = [
    /^question +Deploy\?$/m,
    /^answer +by approver:ann at 20\S+ \S+ \S+: approve, "but gently"$/m,
    /^follow-up +in French$/m,
    /^question +A token\?$/m,
    /^answer +by operator at 20\S+ \S+ \S+: \(secret\)$/m,
  ];
  const shown = await get();
  for (const line of said) expect(shown).toMatch(line);
  expect(shown).toMatch(/^worker +host-7 \(last\)$/m);
  expect(shown).toMatch(/^took +[\d.]+ m?s$/m);
  const history = await get("--history");
  const complete = [
    /^question +by scout at 20\S+ \S+ \S+: "Deploy\?"$/m,
    /^answer +by approver:ann at 20\S+ \S+ \S+: approve, "but gently"$/m,
    /^follow-up +by operator at 20\S+ \S+ \S+: "in French"$/m,
    /^question +by scout at 20\S+ \S+ \S+: "A token\?"$/m,
    /^answer +by operator at 20\S+ \S+ \S+: \(secret\)$/m,
  ];
  for (const line of complete) expect(history).toMatch(line);
  expect(history.split("\n")).toHaveLength(complete.length + 1);
  const messages = (await get("--history", "--json")).trim().split("\n");
  expect(messages.map((line) => JSON.parse(line))).toEqual((await api.get(id)).body.history);
});

test("of a queued delegation: what it waits for, until when, and how the last attempt failed", async () => {
  const { api, next, row } = await setup();
  expect(await row("why")).toBe("scout has no worker (never seen).");
  await api.call("POST", "/v1/agents/scout/pause");
  expect(await row("why")).toBe("scout is paused until the operator resumes it.");
  await api.call("POST", "/v1/agents/scout/resume");
  const error = { code: "command_failed", message: "no disk", retryable: true };
  await api.reply(await next(), { state: "failed", text: undefined, error });
  expect(await row("last attempt")).toBe("failed: command_failed: no disk");
  expect(await row("why")).toMatch(/^The next attempt may start in 10 min\.$/);
});

test("a priority that is not the default one, and the deadline while it counts or if it ended the delegation", async () => {
  const { url, api, clock, gateway } = await setup();
  const shown = async (id: string) => {
    const { stdout } = await runHere(["get", id], { env: { url, token: OPERATOR } });
    return ["priority", "deadline"].map((name) => new RegExp(`^${name} +(.*)$`, "m").exec(stdout)?.[1]);
  };
  const usual = (await api.delegate("scout")).body;
  const urgent = (await api.delegate("scout", { priority: 8, ttl_seconds: 60 })).body;
  const deadline = localTime(urgent.deadline_at);
  expect(await shown(usual.id)).toEqual([undefined, localTime(usual.deadline_at)]);
  expect(await shown(urgent.id)).toEqual(["8", deadline]);
  await api.cancel(usual.id);
  expect(await shown(usual.id)).toEqual([undefined, undefined]);
  clock.offset_ms += 61_000;
  await gateway.sweep.tick();
  expect((await api.get(urgent.id)).body.error.code).toBe("deadline_exceeded");
  expect(await shown(urgent.id)).toEqual(["8", deadline]);
});

test("--history says when it is empty", async () => {
  const { get } = await setup();
  expect(await get("--history")).toBe("no follow-ups, questions or answers yet\n");
  expect(await get("--history", "--json")).toBe("");
});

test("a wait without a terminal says once why no worker takes the delegation; with --json it does not", async () => {
  const { url, api, id, next } = await setup();
  const { body } = await api.delegate("scout");
  const waits = [id, String(body.id)];
  await api.call("PATCH", "/v1/agents/scout", { limits: { max_working: 1 } });
  const lease = await next();
  const env = { url, token: OPERATOR };
  const waiting = start(["get", waits[1] ?? "", "--wait"], { env });
  const silent = start(["get", waits[1] ?? "", "--wait", "--json"], { env });
  await until(() => waiting.stderr() !== "", { what: "the reason" });
  expect(waiting.stderr()).toBe(`errand: ${waits[1]} is queued. scout is at its limit of 1 at once.\n`);
  await api.reply(lease);
  await api.call("POST", "/v1/agents/scout/pause");
  const paused = start(["get", waits[1] ?? "", "--wait"], { env });
  await until(() => paused.stderr().includes("scout is paused"), { what: "the reason" });
  await api.call("POST", "/v1/agents/scout/resume");
  await api.reply(await next());
  expect(await Promise.all([waiting.done, silent.done, paused.done])).toEqual([0, 0, 0]);
  expect(silent.stderr()).toBe("");
  expect(waiting.stderr().split("\n")).toHaveLength(2);
});
