/** A question that was to be answered at once, in advance or by a rule, whose answer fails: people are told of it as of any other. */
import { expect, test, vi } from "vitest";
import type { Command } from "../../src/lifecycle/command.ts";
import { keys } from "../../src/redis/keys.ts";
import { collectFromStart, sdkClient } from "../doors/a2a/support.ts";
import { agUi } from "../doors/agui/support.ts";
import { startReceiver } from "../support/receiver.ts";
import { bodies, startSubscribed } from "../support/subscribed.ts";
import { until } from "../support/until.ts";

const DEPLOY = { text: "Shall I?", action: { name: "deploy", arguments: { to: "prod" } } };

/** In the script, `%` is no pattern for the stamp, so this answer fails with an error of the script. */
const failing = (one: Command): Command =>
  one.move === "answer" ? { ...one, params: { ...one.params, stamp: "%" } } : one;

test.each(["in advance", "by a rule"])("one that is answered %s", async (how) => {
  const { gateway, api, ann, alice, clock, redis, subscribe, tick } = await startSubscribed({
    publicUrl: "https://errand.example",
  });
  await api.call("PATCH", "/v1/agents/scout", { limits: { interrupt_ttl_seconds: 600 } });
  const rule = { agent: "scout", action: "deploy", decision: "approve", only_these_arguments: false };
  if (how === "by a rule") await ann.call("POST", "/v1/rules", rule);
  const more = how === "in advance" ? { auto_approve: true } : {};
  const { url, received } = await startReceiver();
  const { id } = await subscribe(ann, {
    events: ["question", "question_expiring"],
    deliver: [{ kind: "webhook", url }],
  });
  const { store } = gateway.broker.subscriptions;
  const ask = async () => {
    const made = await alice.delegate("scout", more);
    const [lease] = (await api.lease("scout")).body.leases;
    const { status } = await api.interrupt(lease.lease_id, DEPLOY);
    return { status, delegation_id: String(made.body.id), lease_id: String(lease.lease_id) };
  };
  const answered = await ask();
  expect((await api.get(answered.delegation_id)).body.state).toBe("submitted");
  await tick();
  expect(await store.waiting(id, ["0"])).toEqual([0]);
  expect(await redis.zcard(keys.questionsExpiring)).toBe(0);
  const [back] = (await api.lease("scout")).body.leases;
  await api.reply(back.lease_id);

  const { writer } = gateway.broker;
  const [move, moveBoth] = [writer.move.bind(writer), writer.moveBoth.bind(writer)];
  vi.spyOn(writer, "moveBoth").mockImplementation((one, two) => moveBoth(one, failing(two)));
  vi.spyOn(writer, "move").mockImplementation((one, taker) => move(failing(one), taker));
  const { status, delegation_id } = await ask();
  expect(status).toBe(500);
  const { state, interrupt } = (await api.get(delegation_id)).body;
  expect(state).toBe("input_required");
  await tick();
  await until(() => received.length === 1);
  const [told] = bodies(received);
  expect(told).toMatchObject({ type: "question", delegation_id, interrupt_id: interrupt.id });
  expect(told.link).toMatch(/^https:\/\/errand\.example\/answer#lnk_/);
  clock.offset_ms += 550_000;
  await tick();
  await until(() => received.length === 2);
  expect(bodies(received)[1]).toMatchObject({ type: "question_expiring", interrupt_id: interrupt.id });
});

test("every watcher learns that the question is open: callback, results, A2A and AG-UI", async () => {
  const { url, gateway, api, alice, clock } = await startSubscribed();
  const { writer } = gateway.broker;
  const hook = await startReceiver();
  const callback = { url: hook.url, secret: `whsec_${Buffer.alloc(32, 1).toString("base64")}` };
  const made = (await alice.delegate("scout", { auto_approve: true, callback })).body;
  const id = String(made.id);
  const [lease] = (await api.lease("scout")).body.leases;
  // Both watch while it is at work.
  const sdk = await sdkClient(url, "scout", alice.token);
  const streamed = await collectFromStart(sdk.resubscribeTask({ tenant: "", id }));
  const ui = agUi(url, alice.token, made.context_id);
  const ran = ui.run({ forwardedProps: { errand: { attach: true, delegation_id: id } } });
  await until(() => ui.seen("ACTIVITY_SNAPSHOT"));

  const [move, moveBoth] = [writer.move.bind(writer), writer.moveBoth.bind(writer)];
  vi.spyOn(writer, "moveBoth").mockImplementation((one, two) => moveBoth(one, failing(two)));
  vi.spyOn(writer, "move").mockImplementation((one, taker) => move(failing(one), taker));
  expect((await api.interrupt(lease.lease_id, DEPLOY)).status).toBe(500);
  const { interrupt, version } = (await alice.get(id)).body;
  const { events } = (await alice.events(id)).body;
  expect(events.slice(-2)).toMatchObject([
    { seq: version - 1, status: "interrupted", auto: true },
    { seq: version, status: "interrupted", again: true, interrupt },
  ]);
  expect(events.at(-1)).not.toHaveProperty("auto");

  await streamed.ended;
  expect(streamed.lines().at(-1)).toContain("INPUT_REQUIRED");
  const { last, error } = await ran;
  expect([error, last.outcome.interrupts[0].id]).toEqual([undefined, interrupt.id]);
  const { results } = (await alice.call("GET", "/v1/results?after=0")).body;
  expect(results).toMatchObject([{ id, state: "input_required", interrupt: { id: interrupt.id } }]);
  // The sweep makes the call, as after the death of a gateway.
  clock.offset_ms += 60_000;
  await gateway.sweep.tick();
  await until(() => hook.received.length === 1);
  expect(bodies(hook.received)).toMatchObject([{ status: "interrupted", interrupt: { id: interrupt.id } }]);
  // The question is told once, however often the agent repeats it.
  expect((await api.interrupt(lease.lease_id, DEPLOY)).status).toBe(500);
  expect((await alice.get(id)).body.version).toBe(version);

  vi.restoreAllMocks();
  expect((await alice.answer(id, interrupt.id, { decision: "approve" })).status).toBe(200);
  expect((await alice.get(id)).body.state).toBe("submitted");
});
