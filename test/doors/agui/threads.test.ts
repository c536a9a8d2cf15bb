/**
 * Which delegation a run of a thread is about: the caller's own for a cancel or a follow-up, and the one that has the last
 * message already for a run that is sent again, whoever delegated it.
 */
import { describe, expect, test } from "vitest";
import { client as api, as, OPERATOR } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { agUi, type Client, type Json, setup, started } from "./support.ts";

const props = (errand: object) => ({ forwardedProps: { errand } });
type World = Awaited<ReturnType<typeof setup>>;

const count = async ({ alice }: Pick<World, "alice">, thread = "t"): Promise<number> =>
  (await alice.call("GET", `/v1/delegations?context_id=${thread}&limit=100`)).body.delegations.length;

/** A run that its test stops when its snapshots have arrived. */
async function glance(ui: Client, options: object = {}): Promise<Json> {
  const run = ui.run(options);
  await Promise.race([run, until(() => ui.seen("ACTIVITY_SNAPSHOT"), { what: "the snapshots" })]);
  ui.agent.abortRun();
  return (await run).events[0]?.metadata.errand.delegation_id;
}

describe("without a delegation_id", () => {
  test.each([
    ["operator", "cancel"],
    ["approver", "follow_up"],
  ])("an %s's %s is for its own delegations only", async (kind, what) => {
    const world = await setup();
    const { url, client, alice, lease } = world;
    const ui = client("t");
    ui.say("go", "m");
    const { run, delegation } = await started(ui, lease);
    const token = kind === "operator" ? OPERATOR : (await as(url, `${kind}:ann`)).token;
    const ann = agUi(url, token, "t");
    if (what === "follow_up") ann.say("hurry", "f");
    const blind = await ann.run(props({ [what]: true }));
    expect(blind).toMatchObject({ events: [], error: expect.stringContaining("delegation_not_found") });
    expect(blind.error).toContain("of yours");
    expect(blind.error).toContain("delegation_id");
    // Nor does it follow from the messages that alice's run showed.
    await glance(ann, props({ attach: true, delegation_id: delegation.id }));
    expect((await ann.run(props({ [what]: true }))).error).toContain("of yours");
    expect((await alice.get(delegation.id)).body).toMatchObject({ state: "working", history: [] });
    // By its id, it does.
    const named = props({ [what]: true, delegation_id: delegation.id });
    if (what === "cancel") expect((await ann.run(named)).last.outcome).toEqual({ type: "cancelled" });
    else expect(await glance(ann, named)).toBe(delegation.id);
    expect((await alice.get(delegation.id)).body.history).toHaveLength(what === "cancel" ? 0 : 1);
    await alice.cancel(delegation.id);
    await run;
  });

  test("an operator's own is found among newer ones of others", async () => {
    const { url, alice } = await setup();
    const operator = api(url);
    const mine = (await operator.delegate("scout", { context_id: "t" })).body;
    const newer = (await alice.delegate("scout", { context_id: "t" })).body;
    const ui = agUi(url, OPERATOR, "t");
    ui.say("hurry", "f");
    expect(await glance(ui, props({ follow_up: true }))).toBe(mine.id);
    const blind = agUi(url, OPERATOR, "t");
    expect((await blind.run(props({ cancel: true }))).last.outcome).toEqual({ type: "cancelled" });
    expect((await operator.get(mine.id)).body).toMatchObject({ state: "canceled" });
    // Repeated, it cancels nothing else.
    expect((await blind.run(props({ cancel: true }))).error).toBeUndefined();
    expect((await operator.get(newer.id)).body.state).toBe("submitted");
  });
});

describe("a run that is sent again, without new work, delegates nothing", () => {
  test("after a follow-up: it attaches, and shows the end", async () => {
    const world = await setup();
    const { client, lease, scout } = world;
    const ui = client("t");
    ui.say("paint", "m");
    const { run, lease_id, delegation } = await started(ui, lease);
    ui.agent.abortRun();
    await run;
    ui.say("in blue", "f");
    expect(await glance(ui, props({ follow_up: true }))).toBe(delegation.id);
    // Also by a client that lost its stream before it was shown anything.
    const lost = client("t");
    lost.agent.messages = [
      { id: "m", role: "user", content: "paint" },
      { id: "f", role: "user", content: "in blue" },
    ];
    for (const again of [ui, lost]) expect(await glance(again)).toBe(delegation.id);
    await scout.reply(lease_id, { text: "painted" });
    for (const again of [ui, lost])
      expect((await again.run()).result).toMatchObject({ delegation_id: delegation.id });
    expect(await count(world)).toBe(1);
    // Another text under the same id is new work.
    lost.agent.messages = [{ id: "f", role: "user", content: "in red" }];
    expect(await glance(lost)).not.toBe(delegation.id);
    expect(await count(world)).toBe(2);
  });

  test("after an answer", async () => {
    const world = await setup();
    const { client, lease, scout, alice } = world;
    const ui = client("t");
    ui.say("deploy", "m");
    const first = await started(ui, lease);
    const { id } = first.delegation;
    const { interrupt_id } = (await scout.interrupt(first.lease_id, { text: "Where?" })).body;
    await first.run;
    await alice.answer(id, interrupt_id, { text: "host-a" });
    const { lease_id } = await lease();
    ui.agent.pendingInterrupts = [];
    expect(await glance(ui, props({ attach: true }))).toBe(id);
    await scout.reply(lease_id, { text: "deployed" });
    expect((await ui.run()).result.delegation_id).toBe(id);
    expect(await count(world)).toBe(1);
  });

  test.each([["live"], ["finished"]])("of another principal's task that is %s", async (what) => {
    const world = await setup();
    const { url, client, lease, scout, alice } = world;
    const ui = client("t");
    ui.say("go", "m");
    const { run, lease_id, delegation } = await started(ui, lease);
    const ann = agUi(url, OPERATOR, "t");
    expect(await glance(ann, props({ attach: true }))).toBe(delegation.id);
    // Its messages, and those of a client that shares the messages of alice's.
    const shared = agUi(url, OPERATOR, "t");
    shared.say("go", "m");
    if (what === "finished") await scout.reply(lease_id, { text: "done" });
    for (const again of [ann, shared]) expect(await glance(again)).toBe(delegation.id);
    expect(await count(world)).toBe(1);
    // The operator's own work may have the same thread and message id.
    const own = agUi(url, OPERATOR, "t");
    own.say("something else", "m");
    const mine = await glance(own);
    expect((await api(url).get(mine)).body).toMatchObject({ delegator: "operator", context_id: "t" });
    if (what === "live") await alice.cancel(delegation.id);
    await run;
  });

  test("of which the delegation was erased: it is refused, and an earlier one is not canceled", async () => {
    const world = await setup();
    const { client, lease, scout, alice } = world;
    const ui = client("t");
    ui.say("paint", "m");
    const { run, lease_id, delegation } = await started(ui, lease);
    await alice.message(delegation.id, "hurry");
    await until(() => ui.messages().length === 2, { what: "the follow-up" });
    await scout.reply(lease_id, { text: "painted" });
    await run;
    expect((await alice.erase(delegation.id)).status).toBe(204);
    const resume = [{ interruptId: "int_x", status: "resolved" as const, payload: "yes" }];
    for (const again of [{}, { resume }]) {
      const { error } = await ui.run(again);
      expect(error).toContain("delegation_not_found");
      expect(error).toContain("Send a new user message");
    }
    expect(await count(world)).toBe(0);
    // The task is live again, but the last message is not its.
    const again = client("t");
    again.say("paint", "m");
    const live = await glance(again);
    expect((await ui.run(props({ cancel: true }))).error).toContain("delegation_not_found");
    expect((await alice.get(live)).body.state).toBe("submitted");
    // A new message is new work.
    ui.say("paint more", "n");
    expect(await glance(ui)).not.toBe(live);
    expect(await count(world)).toBe(2);
  });

  test("of work that another API delegated", async () => {
    const world = await setup();
    const { client, alice } = world;
    const { id } = (await alice.delegate("scout", { context_id: "t", task: "go" })).body;
    const ui = client("t");
    expect(await glance(ui, props({ attach: true }))).toBe(id);
    expect(await glance(ui)).toBe(id);
    await alice.cancel(id);
    expect((await ui.run()).last.outcome).toEqual({ type: "cancelled" });
    expect(await count(world)).toBe(1);
  });

  test("but the same conversation, sent to another agent, is that agent's work", async () => {
    const world = await setup();
    const { url, client, lease, alice } = world;
    await as(url, "agent:helper").then((helper) => helper.agent("helper"));
    const ui = client("t");
    ui.say("go", "m");
    const { run, delegation } = await started(ui, lease);
    await alice.message(delegation.id, "hurry");
    await until(() => ui.messages().length === 2, { what: "the follow-up" });
    ui.agent.abortRun();
    await run;
    const other = agUi(url, alice.token, "t", "helper");
    other.agent.messages = [...ui.agent.messages];
    expect(await glance(other)).not.toBe(delegation.id);
    expect(await count(world)).toBe(2);
  });
});

test("a message is found by its id, not by what messages contain", async () => {
  const { client, alice } = await setup();
  const message = { parts: [{ data: { messageId: "m", interrupt_id: "int_x" } }] };
  await alice.delegate("scout", { context_id: "t", task: undefined, message });
  const ui = client("t");
  ui.say("go", "m");
  expect((await ui.run(props({ attach: true }))).error).toContain("delegation_not_found");
});

test("in a long thread: questions and one's own tasks are found, an old follow-up counts as new work", async () => {
  const world = await setup();
  const { client, alice, lease, scout } = world;
  const ui = client("t");
  ui.say("deploy", "m");
  const first = await started(ui, lease);
  const { id } = first.delegation;
  await alice.call("POST", `/v1/delegations/${id}/messages`, {
    message: { messageId: "f", parts: [{ text: "soon" }] },
  });
  const { interrupt_id } = (await scout.interrupt(first.lease_id, { text: "Where?" })).body;
  await first.run;
  const delegations = Array.from({ length: 20 }, () => ({ target: "scout", task: "other", context_id: "t" }));
  await alice.call("POST", "/v1/delegations/batch", { delegations });
  const late = client("t");
  const resume = [{ interruptId: interrupt_id, status: "resolved", payload: "host-a" }];
  expect(await glance(late, { resume })).toBe(id);
  expect((await alice.get(id)).body.history.at(-1).parts).toEqual([{ text: "host-a" }]);
  const own = client("t");
  own.say("deploy", "m");
  expect(await glance(own)).toBe(id);
  const old = client("t");
  old.say("soon", "f");
  expect((await old.run(props({ attach: true }))).error).toContain("delegation_not_found");
  expect(await glance(old)).not.toBe(id);
  expect(await count(world)).toBe(22);
});
