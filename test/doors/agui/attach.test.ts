/**
 * Attaching over AG-UI: a run for the same message finds its delegation while it lives, at any gateway, and shows the
 * same. Nothing is delegated twice, and nothing is shown twice.
 */
import { expect, test } from "vitest";
import { as } from "../../support/broker.ts";
import { startGatewayProcess } from "../../support/gateway-process.ts";
import { until } from "../../support/until.ts";
import { agUi, type Client, type Json, setup, started } from "./support.ts";

const ATTACH = { forwardedProps: { errand: { attach: true } } };
const INTERRUPT = { type: "interrupt" };

type World = Awaited<ReturnType<typeof setup>>;

/** The work of an agent in pieces, one for each event that the client sees; then it asks, and completes. */
async function work({ scout }: World, lease_id: string): Promise<void> {
  const artifact = (parts: object[], more: object = {}) =>
    scout.call("POST", `/v1/leases/${lease_id}/artifacts`, {
      artifact: { artifactId: "log", name: "log", parts },
      append: true,
      ...more,
    });
  await scout.heartbeat(lease_id, { progress: { message: "reading", current_step: "read" } });
  await artifact([{ text: "line 1\n" }]);
  await artifact([{ text: "line 2\n" }, { data: { lines: 2 } }], { last_chunk: true });
  await scout.heartbeat(lease_id, { progress: { message: "asking", current_step: "ask" } });
  await scout.interrupt(lease_id, { text: "Deploy?", action: { name: "deploy" }, request_id: "go" });
}

/** What a person sees, without what only one connection has. */
const shown = (ui: Client) => ({ messages: ui.messages(), errand: { ...ui.errand(), presence: null } });

test("a stream that is cut after any event and attached again shows the same, once", async () => {
  const world = await setup();
  const { client, lease, alice, scout } = world;
  const whole = client("t");
  whole.say("go", "m");
  const first = await started(whole, lease);
  const { id } = first.delegation;
  await work(world, first.lease_id);
  const { events, last } = await first.run;
  expect(last.outcome).toMatchObject(INTERRUPT);
  const [question] = last.outcome.interrupts;
  await alice.answer(id, question.id, { decision: "approve" });
  const back = await lease();
  const end = whole.run({
    ...ATTACH,
    resume: [{ interruptId: question.id, status: "resolved", payload: "approve" }],
  });
  await until(() => whole.seen("ACTIVITY_SNAPSHOT"), { what: "the second run" });
  await scout.call("POST", `/v1/leases/${back.lease_id}/artifacts`, {
    artifact: { artifactId: "after", parts: [{ text: "deployed to 3 hosts" }] },
  });
  await scout.reply(back.lease_id, { text: "done" });
  const second = await end;
  expect(second.error).toBeUndefined();
  expect(whole.messages().map(({ content }) => content)).toEqual([
    ...["go", "line 1\nline 2\n", "Deploy?", "approve", "deployed to 3 hosts", "done"],
  ]);

  // The same work, by clients that are cut: each after another number of events, in both runs.
  const cuts = Math.max(events.length, second.events.length);
  const clients = Array.from({ length: cuts }, (_, at) => ({ ui: client("cut"), cutAfter: at + 1 }));
  for (const { ui } of clients) ui.say("go", "cut-m");
  const cutRuns = clients.map(({ ui, cutAfter }) => ui.run({ cutAfter }));
  await until(() => clients.every(({ ui }) => ui.seen("RUN_STARTED")), { what: "all runs" });
  const again = await lease();
  await work(world, again.lease_id);
  await Promise.all(cutRuns);
  // The client library would not run again before its user answers.
  for (const { ui } of clients) ui.agent.pendingInterrupts = [];
  const asked = await Promise.all(clients.map(({ ui }) => ui.run(ATTACH)));
  const interrupts = asked.map((ran) => ran.last.outcome.interrupts[0]);
  expect(new Set(interrupts.map((one: Json) => one.id)).size).toBe(1);
  const [other] = interrupts;
  expect(other).toEqual({
    ...question,
    id: other.id,
    expiresAt: other.expiresAt,
    metadata: {
      errand: {
        ...question.metadata.errand,
        ...{
          delegation_id: again.delegation.id,
          raised_at: other.metadata.errand.raised_at,
          requests: other.metadata.errand.requests,
        },
      },
    },
  });
  const resume = [{ interruptId: other.id, status: "resolved" as const, payload: "approve" }];
  const resumed = clients.map(({ ui, cutAfter }) => ui.run({ resume, cutAfter }));
  await until(() => clients.every(({ ui }) => ui.seen("RUN_STARTED")), { what: "all resumed runs" });
  const last2 = await lease();
  await scout.call("POST", `/v1/leases/${last2.lease_id}/artifacts`, {
    artifact: { artifactId: "after", parts: [{ text: "deployed to 3 hosts" }] },
  });
  await scout.reply(last2.lease_id, { text: "done" });
  await Promise.all(resumed);
  for (const { ui, cutAfter } of clients) {
    ui.agent.pendingInterrupts = [];
    const { error } = await ui.run(ATTACH);
    expect([cutAfter, error]).toEqual([cutAfter, undefined]);
    expect(shown(ui)).toEqual(shown(clients[0]?.ui ?? ui));
    expect(ui.messages().map(({ content }) => content)).toEqual(
      whole.messages().map(({ content }) => content),
    );
  }
  // One delegation for each message, whoever ran it.
  const { delegations } = (await alice.call("GET", "/v1/delegations?target=scout")).body;
  expect(delegations.map(({ context_id }: Json) => context_id).sort()).toEqual(["cut", "t"]);
  // A client without messages sees the same as one that was there.
  const late = client("cut");
  expect((await late.run(ATTACH)).last.outcome).toEqual({ type: "success" });
  expect(shown(late)).toEqual(shown(clients[0]?.ui ?? late));
}, 60_000);

test("two clients of one thread see one delegation; after its end, a rerun delegates again", async () => {
  const { client, lease, scout, alice } = await setup();
  const [one, two] = [client("t"), client("t")];
  for (const ui of [one, two]) ui.say("go", "m");
  const runs = [one.run(), two.run()];
  await until(() => one.seen("ACTIVITY_SNAPSHOT") && two.seen("ACTIVITY_SNAPSHOT"), { what: "both" });
  const { lease_id, delegation } = await lease();
  await scout.reply(lease_id, { text: "done" });
  for (const run of runs) expect((await run).result.delegation_id).toBe(delegation.id);
  expect(one.messages()).toEqual(two.messages());
  // Attaching after the end shows it, and delegates nothing.
  expect((await one.run(ATTACH)).result.delegation_id).toBe(delegation.id);
  const again = await started(one, lease);
  expect(again.delegation.id).not.toBe(delegation.id);
  // While it lives, another text under the same id is a mistake.
  const odd = client("t");
  odd.say("something else", "m");
  expect((await odd.run()).error).toContain("idempotency_conflict");
  await scout.reply(again.lease_id, { text: "done again" });
  expect((await again.run).result.delegation_id).toBe(again.delegation.id);
  const { delegations } = (await alice.call("GET", "/v1/delegations?context_id=t")).body;
  expect(delegations).toHaveLength(2);
});

test("concurrent reruns after the end delegate once", async () => {
  const { client, lease, scout, alice, another } = await setup();
  const first = client("t");
  first.say("go", "m");
  const { run, lease_id } = await started(first, lease);
  await scout.reply(lease_id);
  await run;
  const elsewhere = await another();
  const clients = Array.from({ length: 6 }, (_, at) =>
    at % 2 === 0 ? client("t") : agUi(elsewhere.url, alice.token, "t"),
  );
  for (const ui of clients) ui.say("go", "m");
  const runs = clients.map((ui) => ui.run());
  await until(() => clients.every((ui) => ui.seen("ACTIVITY_SNAPSHOT")), { what: "all" });
  await scout.reply((await lease()).lease_id);
  const ids = (await Promise.all(runs)).map(({ result }) => result.delegation_id);
  expect(new Set(ids).size).toBe(1);
  expect((await alice.call("GET", "/v1/delegations?context_id=t")).body.delegations).toHaveLength(2);
});

test("a gateway that is killed in the middle: the run goes on at another one", async () => {
  const { db, url, scout, alice, lease } = await setup();
  const doomed = await startGatewayProcess(db);
  const ui = agUi(doomed.url, alice.token, "t");
  ui.say("go", "m");
  const { run, lease_id, delegation } = await started(ui, lease);
  await scout.heartbeat(lease_id, { progress: { message: "on it", current_step: "one" } });
  await until(() => ui.seen("STEP_STARTED"), { what: "the progress" });
  await doomed.kill();
  expect((await run).types).not.toContain("RUN_FINISHED");
  ui.agent.url = `${url}/ag-ui/scout`;
  const rest = ui.run();
  await until(() => ui.seen("STEP_STARTED"), { what: "the progress again" });
  await scout.reply(lease_id, { text: "done" });
  expect((await rest).result.delegation_id).toBe(delegation.id);
  expect(ui.messages().map(({ content }) => content)).toEqual(["go", "done"]);
}, 60_000);

test("a gateway that stops ends its streams, and the work stays", async () => {
  const { another, alice, lease, client, scout } = await setup();
  const second = await another();
  const ui = agUi(second.url, alice.token, "t");
  ui.say("go", "m");
  const { run, lease_id } = await started(ui, lease);
  await second.gateway.close();
  // Not an end of the run: the client knows that it was cut.
  expect((await run).types.filter((type) => /RUN_(?:FINISHED|ERROR)/.test(type))).toEqual([]);
  const there = client("t");
  const rest = there.run(ATTACH);
  await until(() => there.seen("ACTIVITY_SNAPSHOT"), { what: "the snapshots" });
  await scout.reply(lease_id, { text: "done" });
  expect((await rest).last.outcome).toEqual({ type: "success" });
});

test("a follow-up reaches the agent, once, and its sender keeps its message's id", async () => {
  const { client, lease, scout } = await setup();
  const ui = client("t");
  ui.say("paint", "m");
  const { run, lease_id } = await started(ui, lease);
  const second = client("t");
  second.say("in blue", "f");
  const props = { forwardedProps: { errand: { follow_up: true } } };
  const followed = second.run(props);
  await until(() => second.seen("ACTIVITY_SNAPSHOT"), { what: "the second run" });
  second.agent.abortRun();
  await followed;
  const third = second.run(props);
  await until(() => second.seen("ACTIVITY_SNAPSHOT"), { what: "the third run" });
  const { messages } = (await scout.heartbeat(lease_id)).body;
  expect(messages.map(({ parts }: Json) => parts)).toEqual([[{ text: "in blue" }]]);
  await scout.reply(lease_id, { text: "painted blue" });
  expect((await third).error).toBeUndefined();
  await run;
  expect(second.messages().map(({ id, content }) => [id, content])).toEqual([
    ["f", "in blue"],
    [expect.stringMatching(/^dlg_.*\/message\/m$/), "paint"],
    [expect.stringMatching(/^dlg_.*\/reply$/), "painted blue"],
  ]);
  expect(ui.messages().map(({ content }) => content)).toEqual(["paint", "in blue", "painted blue"]);
});

test("each principal has its own threads", async () => {
  const { url, client, lease, scout, alice } = await setup();
  const ui = client("shared");
  ui.say("go", "m");
  const { run, lease_id, delegation } = await started(ui, lease);
  const bob = await as(url, "caller:bob");
  const strange = agUi(url, bob.token, "shared");
  strange.say("go", "m");
  expect((await strange.run(ATTACH)).error).toContain("delegation_not_found");
  const named = { attach: true, delegation_id: delegation.id };
  expect((await strange.run({ forwardedProps: { errand: named } })).error).toContain("delegation_not_found");
  // It is no other agent's.
  const elsewhere = agUi(url, alice.token, "shared", "helper");
  await as(url, "agent:helper").then((helper) => helper.agent("helper"));
  expect((await elsewhere.run({ forwardedProps: { errand: named } })).error).toContain(
    "delegation_not_found",
  );
  const other = await started(strange, lease);
  expect(other.delegation).toMatchObject({ delegator: "caller:bob", context_id: "shared" });
  // A viewer sees it by its thread or its id, and can run nothing.
  const viewer = agUi(url, (await as(url, "viewer:eve")).token, "shared");
  await scout.reply(lease_id, { text: "done" });
  await run;
  expect((await viewer.run({ forwardedProps: { errand: named } })).result.delegation_id).toBe(delegation.id);
  viewer.say("go");
  expect((await viewer.run()).error).toContain("forbidden");
  await alice.cancel(other.delegation.id);
});
