/** A failure because nobody answered says so, in how long, and who was notified: the same through every API. */
import { expect, test } from "vitest";
import { Delegator } from "../../src/client/delegator.ts";
import { readTold } from "../../src/engine/subscriptions/told.ts";
import { keys } from "../../src/redis/keys.ts";
import { BINDINGS, sdkClient, textOf } from "../doors/a2a/support.ts";
import { agUi } from "../doors/agui/support.ts";
import { as } from "../support/broker.ts";
import { mcpClient, toolOutput } from "../support/mcp.ts";
import { startReceiver } from "../support/receiver.ts";
import { bodies, startSubscribed } from "../support/subscribed.ts";
import { until } from "../support/until.ts";

test("a question that expires names who was notified and how, at every API, the same for good", async () => {
  const { url, api, ann, alice, redis, clock, gateway, subscribe, tick } = await startSubscribed();
  await api.agent("scout", { limits: { interrupt_ttl_seconds: 7_200 } });
  const [phone, hook] = [await startReceiver(), await startReceiver()];
  await subscribe(ann, { events: ["question"], deliver: [{ kind: "webhook", url: phone.url }] });
  await subscribe(alice, { events: ["question"], deliver: [{ kind: "slack", url: phone.url }] });
  await tick();
  const callback = { url: hook.url, secret: `whsec_${Buffer.alloc(32, 1).toString("base64")}` };
  const { id, context_id } = (await alice.delegate("scout", { callback })).body;
  const [lease] = (await api.lease("scout")).body.leases;
  await api.interrupt(lease.lease_id, { text: "May I?" });
  await tick();
  const noted = keys.told(id);
  await until(async () => (await redis.llen(noted)) === 2);
  clock.offset_ms += 7_200_001;
  await gateway.sweep.tick();

  const { error, state } = (await alice.get(id)).body;
  const people = ["approver:ann by webhook", "caller:alice by slack"];
  const texts = [people, people.toReversed()].map((both) => both.join("; "));
  expect([state, error.code]).toEqual(["failed", "interrupt_expired"]);
  expect(texts.map((text) => `Nobody answered the question within 2 h. Notified: ${text}.`)).toContain(
    error.message,
  );
  const at = expect.any(String);
  const told = [
    { person: "approver:ann", channel: "webhook", at },
    { person: "caller:alice", channel: "slack", at },
  ];
  expect(error.told).toHaveLength(2);
  expect(error.told).toEqual(expect.arrayContaining(told));

  // REST and the library.
  expect((await alice.events(id)).body.events.at(-1).error).toEqual(error);
  const { results } = (await alice.call("GET", "/v1/results?after=0")).body;
  expect(results.map((one: { error: unknown }) => one.error)).toContainEqual(error);
  const delegator = new Delegator({ url, token: alice.token });
  expect((await delegator.wait(id)).error).toEqual(error);
  await until(() => hook.received.length === 2);
  expect(bodies(hook.received)[1].error).toEqual(error);
  // A2A.
  for (const binding of BINDINGS) {
    const task = await (await sdkClient(url, "scout", alice.token, binding)).getTask({ tenant: "", id });
    expect(textOf(task.status?.message?.parts)).toBe(error.message);
    expect(task.metadata?.errand.error).toEqual(error);
  }
  // MCP.
  const mcp = await mcpClient(url, alice.token, "modern");
  const status = await mcp.callTool({ name: "check_task_status", arguments: { delegation_id: id } });
  expect(toolOutput(status).text).toContain(error.message);
  // AG-UI.
  const ui = agUi(url, alice.token, context_id);
  const { last } = await ui.run({ forwardedProps: { errand: { attach: true, delegation_id: id } } });
  expect(last).toMatchObject({ type: "RUN_ERROR", message: error.message });
  expect(last.metadata.errand.told).toEqual(error.told);

  // What is noted later changes nothing.
  await redis.del(noted);
  expect((await alice.get(id)).body.error).toEqual(error);
});

test("with its delegation, too, a question expires unanswered, and that is notified", async () => {
  const { api, ann, alice, clock, gateway, subscribe, tick } = await startSubscribed();
  const { url, received } = await startReceiver();
  await tick();
  const { id } = (await alice.delegate("scout", { ttl_seconds: 1_800 })).body;
  const [lease] = (await api.lease("scout")).body.leases;
  const { interrupt_id } = (await api.interrupt(lease.lease_id, { text: "May I?" })).body;
  await subscribe(ann, { events: ["question_expired"], deliver: [{ kind: "webhook", url }] });
  await tick();
  clock.offset_ms += 1_800_000;
  await gateway.sweep.tick();
  const { error } = (await alice.get(id)).body;
  expect([error.code, error.told]).toEqual(["deadline_exceeded", []]);
  expect(error.message).toMatch(
    /^The deadline passed, and nobody answered the question within .* Nobody was notified of it\.$/,
  );
  await tick();
  await until(() => received.length === 1);
  expect(bodies(received)[0]).toMatchObject({ type: "question_expired", delegation_id: id, interrupt_id });
});

test("votes that came are counted, and a failure without a question names nobody", async () => {
  const { url, api, ann, alice, clock, gateway } = await startSubscribed();
  await api.agent("scout", { votes: { needed: 2 } });
  const { id } = (await alice.delegate("scout")).body;
  const { id: other } = (await alice.delegate("scout", { ttl_seconds: 60 })).body;
  const scout = await as(url, "agent:scout");
  const [lease] = (await scout.lease("scout")).body.leases;
  const question = { text: "May I?", options: ["approve", "deny"], expires_in_seconds: 5_400 };
  const { interrupt_id } = (await scout.interrupt(lease.lease_id, question)).body;
  expect((await ann.answer(id, interrupt_id, { decision: "approve" })).status).toBeLessThan(300);
  clock.offset_ms += 5_400_001;
  await gateway.sweep.tick();
  const [asked, ended] = [(await alice.get(id)).body.error, (await alice.get(other)).body.error];
  expect(asked.message).toBe(
    "The question had 1 of 2 approvals within 1 h 30 min. Nobody was notified of it.",
  );
  expect([ended.code, ended.message, "told" in ended]).toEqual([
    "deadline_exceeded",
    "The deadline passed",
    false,
  ]);
});

test("who was notified is noted for each question apart, and goes when the delegation is erased", async () => {
  const { api, ann, alice, redis, subscribe, tick } = await startSubscribed();
  const { url, received } = await startReceiver();
  const deliver = Array.from({ length: 2 }, () => ({ kind: "webhook", url }));
  await subscribe(ann, { events: ["question"], deliver });
  await tick();
  const { id } = (await alice.delegate("scout")).body;
  for (let asked = 1; asked <= 2; asked += 1) {
    const [lease] = (await api.lease("scout")).body.leases;
    const { interrupt_id } = (await api.interrupt(lease.lease_id, { text: "May I?" })).body;
    await until(async () => (await tick()) !== null && received.length === 2 * asked);
    await until(async () => (await redis.llen(keys.told(id))) === 2 * asked);
    expect(await readTold(redis, id, interrupt_id)).toHaveLength(2);
    expect((await alice.answer(id, interrupt_id, { text: "yes" })).status).toBeLessThan(300);
  }
  await alice.cancel(id);
  expect((await alice.erase(id)).status).toBe(204);
  expect(await redis.keys(`${keys.told("")}*`)).toEqual([]);
});
