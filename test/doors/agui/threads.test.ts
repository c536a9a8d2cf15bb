/**
 * Which delegation a run of a thread is about: one of the caller's own, or another principal's that an id names. A run
 * that is sent again finds the one that has its last message already.
 */
import type { InputContent } from "@ag-ui/core";
import { describe, expect, test, vi } from "vitest";
import type { Redis } from "../../../src/redis/connect.ts";
import { client as api, as, OPERATOR } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { agUi, type Client, type Json, setup, started } from "./support.ts";

const props = (errand: object) => ({ forwardedProps: { errand } });
type World = Awaited<ReturnType<typeof setup>>;

const count = async (
  { alice }: { readonly alice: Pick<World["alice"], "call"> },
  thread = "t",
): Promise<number> =>
  (await alice.call("GET", `/v1/delegations?context_id=${thread}&limit=100`)).body.delegations.length;

/** A run that its test stops when its snapshots have arrived. */
async function glance(ui: Client, options: object = {}): Promise<Json> {
  const run = ui.run(options);
  await Promise.race([run, until(() => ui.seen("ACTIVITY_SNAPSHOT"), { what: "the snapshots" })]);
  ui.agent.abortRun();
  return (await run).events[0]?.metadata.errand.delegation_id;
}

/** A client whose last message is a follow-up from the broker, to a delegation that finished and was erased. */
async function withErased({ client, lease, scout, alice }: World): Promise<Client> {
  const ui = client("t");
  ui.say("paint", "m");
  const { run, lease_id, delegation } = await started(ui, lease);
  await alice.message(delegation.id, "hurry");
  await until(() => ui.messages().length === 2, { what: "the follow-up" });
  await scout.reply(lease_id, { text: "painted" });
  await run;
  expect((await alice.erase(delegation.id)).status).toBe(204);
  return ui;
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

describe("another principal's thread of the same name", () => {
  test("has nothing to do with the run: its message is new work, and it attaches to nothing", async () => {
    const world = await setup();
    const { url, client, lease, alice } = world;
    const ui = client("t");
    ui.say("go", "m");
    const { run, delegation } = await started(ui, lease);
    for (const principal of ["operator", "approver:ann", "viewer:eve"]) {
      const token = principal === "operator" ? OPERATOR : (await as(url, principal)).token;
      const blind = agUi(url, token, "t");
      expect((await blind.run(props({ attach: true }))).error).toContain("of yours in this thread");
      blind.say("go", "m");
      expect((await blind.run(props({ attach: true }))).error).toContain("with the last user message");
    }
    const operator = agUi(url, OPERATOR, "t");
    operator.say("go", "m");
    const mine = await glance(operator);
    expect((await api(url).get(mine)).body).toMatchObject({ delegator: "operator", context_id: "t" });
    expect(await glance(operator)).toBe(mine);
    expect(await count({ alice: api(url) })).toBe(2);
    await alice.cancel(delegation.id);
    await run;
  });

  test("is shown whole, although the caller has a message with the id of its task", async () => {
    const { url, client, lease, scout } = await setup();
    const ui = client("t");
    ui.say("go", "m");
    const { run, lease_id, delegation } = await started(ui, lease);
    await scout.reply(lease_id, { text: "done" });
    await run;
    const operator = agUi(url, OPERATOR, "t");
    operator.say("of my own", "m");
    const ran = await operator.run(props({ attach: true, delegation_id: delegation.id }));
    expect(ran.error).toBeUndefined();
    expect(operator.messages().map(({ content }) => content)).toEqual(["of my own", "go", "done"]);
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

  test.each([["live"], ["finished"]])("of another principal's task that it was shown, %s", async (what) => {
    const world = await setup();
    const { url, client, lease, scout, alice } = world;
    const ui = client("t");
    ui.say("go", "m");
    const { run, lease_id, delegation } = await started(ui, lease);
    const ann = agUi(url, OPERATOR, "t");
    expect(await glance(ann, props({ attach: true, delegation_id: delegation.id }))).toBe(delegation.id);
    if (what === "finished") await scout.reply(lease_id, { text: "done" });
    expect(await glance(ann)).toBe(delegation.id);
    expect(await count({ alice: api(url) })).toBe(1);
    if (what === "live") await alice.cancel(delegation.id);
    await run;
  });

  test("of which the delegation was erased: it is refused, and an earlier one is neither shown nor canceled", async () => {
    const world = await setup();
    const { client, alice } = world;
    const ui = await withErased(world);
    const resume = [{ interruptId: "int_x", status: "resolved" as const, payload: "yes" }];
    const refused = async (options: object) => {
      const { error } = await ui.run(options);
      expect(error).toContain("delegation_not_found");
      expect(error).toContain("Send a new user message");
    };
    for (const options of [{}, { resume }]) await refused(options);
    expect(await count(world)).toBe(0);
    // The task is live again, but the last message is of the erased delegation.
    const again = client("t");
    again.say("paint", "m");
    const live = await glance(again);
    for (const options of [{}, { resume }, props({ attach: true }), props({ cancel: true })])
      await refused(options);
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

  test("with an image; the same id and text with another image is new work", async () => {
    const world = await setup();
    const { client, alice } = world;
    const image = (value: string): InputContent[] => [
      { type: "text", text: "like this" },
      { type: "image", source: { type: "data", value, mimeType: "image/png" } },
    ];
    const parts = [{ text: "like this" }, { raw: "aGk=", mediaType: "image/png" }];
    const message = { messageId: "m", role: "ROLE_USER", parts };
    const { id } = (await alice.delegate("scout", { context_id: "t", message })).body;
    const runWith = (value: string) => {
      const ui = client("t");
      ui.agent.addMessage({ id: "m", role: "user", content: image(value) });
      return glance(ui);
    };
    expect(await runWith("aGk=")).toBe(id);
    expect(await runWith("b3RoZXI=")).not.toBe(id);
    expect(await count(world)).toBe(2);
  });

  test("nor does one whose last message the broker gave to another thread or agent: it is refused", async () => {
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
    const helper = agUi(url, alice.token, "t", "helper");
    const elsewhere = client("u");
    const resume = [{ interruptId: "int_x", status: "resolved" as const, payload: "yes" }];
    for (const other of [helper, elsewhere]) {
      other.agent.messages = [...ui.agent.messages];
      for (const options of [{}, { resume }, props({ follow_up: true, delegation_id: delegation.id })])
        expect((await other.run(options)).error).toContain("another thread or agent; send a new one");
      for (const what of ["attach", "cancel"])
        expect((await other.run(props({ [what]: true }))).error).toContain("delegation_not_found");
    }
    expect([await count(world), await count(world, "u")]).toEqual([1, 0]);
    helper.say("go on", "n");
    expect(await glance(helper)).not.toBe(delegation.id);
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

test("an erased delegation does not keep its client from answering another one", async () => {
  const world = await setup();
  const { client, lease, scout } = world;
  const ui = await withErased(world);
  const other = client("t");
  other.say("deploy", "n");
  const { run, lease_id, delegation } = await started(other, lease);
  const { interrupt_id } = (await scout.interrupt(lease_id, { text: "Where?" })).body;
  await run;
  ui.agent.pendingInterrupts = [];
  const resume = [{ interruptId: interrupt_id, status: "resolved" as const, payload: "host-a" }];
  expect(await glance(ui, { resume })).toBe(delegation.id);
});

test("a task whose messages cannot show all of it gets an id of the broker, so a rerun attaches", async () => {
  const world = await setup();
  const { client } = world;
  const first = client("t");
  const source = { type: "url" as const, value: "https://example.org/a.pdf" };
  first.agent.addMessage({ id: "m", role: "user", content: [{ type: "document", source }] });
  const id = await glance(first);
  const late = client("t");
  expect(await glance(late, props({ attach: true }))).toBe(id);
  expect(late.messages()[0]).toMatchObject({ id: `${id}/message/m`, content: source.value });
  expect(await glance(late)).toBe(id);
  expect(await count(world)).toBe(1);
});

describe("a follow-up that is sent again", () => {
  const FOLLOW = props({ follow_up: true });

  test("after the agent asked or ended shows that, and the agent gets it once", async () => {
    const world = await setup();
    const { client, lease, scout, alice } = world;
    const ui = client("t");
    ui.say("paint", "m");
    const { run, lease_id, delegation } = await started(ui, lease);
    ui.agent.abortRun();
    await run;
    ui.say("in blue", "f");
    expect(await glance(ui, FOLLOW)).toBe(delegation.id);
    const { interrupt_id } = (await scout.interrupt(lease_id, { text: "Which blue?" })).body;
    const asked = await ui.run(FOLLOW);
    expect([asked.error, asked.last.outcome.interrupts[0].id]).toEqual([undefined, interrupt_id]);
    ui.agent.pendingInterrupts = [];
    // Another message is refused.
    ui.say("or green", "g");
    expect((await ui.run(FOLLOW)).error).toContain("wrong_state");
    ui.agent.messages = ui.agent.messages.filter((one) => one.id !== "g");
    await alice.answer(delegation.id, interrupt_id, { text: "sky" });
    await scout.reply((await lease()).lease_id, { text: "painted" });
    const ended = await ui.run(FOLLOW);
    expect([ended.error, ended.result.delegation_id]).toEqual([undefined, delegation.id]);
    const { history } = (await alice.get(delegation.id)).body;
    expect(history.filter((one: Json) => one.messageId === "f")).toHaveLength(1);
    expect(await count(world)).toBe(1);
  });

  test("is not sent if it is the task, which the agent has: the run shows the delegation, a live one first", async () => {
    const { client, lease, scout, alice } = await setup();
    const ui = client("t");
    ui.say("paint", "m");
    const first = await started(ui, lease);
    expect(await glance(client("t"), props({ attach: true }))).toBe(first.delegation.id);
    const again = client("t");
    again.say("paint", "m");
    expect(await glance(again, FOLLOW)).toBe(first.delegation.id);
    await scout.reply(first.lease_id, { text: "painted" });
    await first.run;
    expect((await again.run(FOLLOW)).result.delegation_id).toBe(first.delegation.id);
    const second = await started(ui, lease);
    // A newer one that is finished has the same message.
    const parts = [{ text: "paint" }];
    const newest = await alice.delegate("scout", { context_id: "t", message: { messageId: "m", parts } });
    await alice.cancel(newest.body.id);
    expect(await glance(again, FOLLOW)).toBe(second.delegation.id);
    for (const { delegation } of [first, second])
      expect((await alice.get(delegation.id)).body.history).toEqual([]);
    await scout.reply(second.lease_id);
    await second.run;
  });

  test("is refused for a principal that may see the delegation, but not send it messages", async () => {
    const { url, client, lease, scout } = await setup();
    const ui = client("t");
    ui.say("paint", "m");
    const { run, lease_id, delegation } = await started(ui, lease);
    const follow = props({ follow_up: true, delegation_id: delegation.id });
    const operator = agUi(url, OPERATOR, "t");
    operator.say("in blue", "f");
    expect(await glance(operator, follow)).toBe(delegation.id);
    await scout.reply(lease_id, { text: "painted" });
    await run;
    expect((await operator.run(follow)).result.delegation_id).toBe(delegation.id);
    for (const principal of ["viewer:eve", "agent:scout"]) {
      const other = agUi(url, (await as(url, principal)).token, "t");
      other.say("in blue", "f");
      expect((await other.run(follow)).error).toContain("forbidden");
    }
  });
});

test("a message is found in the newest 20 delegations, however large they are", async () => {
  const { client, alice } = await setup();
  const { id } = (await alice.delegate("scout", { context_id: "t" })).body;
  const message = { messageId: "f", parts: [{ text: "soon" }] };
  await alice.call("POST", `/v1/delegations/${id}/messages`, { message });
  const task = "x".repeat(1_000_000);
  for (let n = 0; n < 9; n += 1) await alice.delegate("scout", { context_id: "t", task });
  const ui = client("t");
  ui.say("soon", "f");
  expect(await glance(ui)).toBe(id);
});

test("a message is found behind a thousand newer entries of the thread, which are another page", async () => {
  const { url, redis, gateway } = await setup();
  const message = { messageId: "f", role: "ROLE_USER", parts: [{ text: "soon" }] };
  const { body } = await api(url).delegate("scout", { context_id: "t", message });
  // Of delegations that are deleted: an operator's list counts them as read.
  const { shards } = gateway.broker;
  const later = Date.parse(body.created_at) + 1;
  const entries = Array.from({ length: 1_000 }, () => [later, shards.newDelegationId("scout")]);
  for (const list of ["context:t", "delegator:operator"])
    await redis.zadd(shards.ofId(body.id)?.list(list) ?? "", ...entries.flat());
  const ui = agUi(url, OPERATOR, "t");
  ui.say("soon", "f");
  expect(await glance(ui)).toBe(body.id);
});

test("a question is looked for in summaries: the delegations that ask are not read", async () => {
  const { gateway, alice, scout, lease, client } = await setup();
  const parts = [{ text: "x".repeat(900_000) }];
  for (let n = 0; n < 3; n += 1) {
    await alice.delegate("scout", { context_id: "t" });
    const { lease_id } = await lease();
    await scout.call("POST", `/v1/leases/${lease_id}/artifacts`, { artifact: { artifactId: "a", parts } });
    await scout.interrupt(lease_id, { text: "Where?" });
  }
  const answered = bytesRead(gateway.broker.bulk);
  const resume = [{ interruptId: "int_x", status: "resolved" as const, payload: "yes" }];
  const ui = client("t");
  ui.say("new work", "m");
  await glance(ui, { resume });
  expect(bytesRead(gateway.broker.bulk) - answered).toBeLessThan(100_000);
});

test("a new message is compared in Redis: the messages of the thread are not transferred", async () => {
  const { gateway, alice, client } = await setup();
  const task = "x".repeat(900_000);
  for (let n = 0; n < 3; n += 1) await alice.delegate("scout", { context_id: "t", task });
  const before = bytesRead(gateway.broker.bulk);
  const ui = client("t");
  // The JSON of every message has this text.
  ui.say("new work", "text");
  await glance(ui);
  expect(bytesRead(gateway.broker.bulk) - before).toBeLessThan(100_000);
});

test("a stored message that cannot be read is not the run's", async () => {
  const world = await setup();
  const { redis, gateway, alice, client } = world;
  const message = { messageId: "m", parts: [{ text: "go" }] };
  const { id } = (await alice.delegate("scout", { context_id: "t", message })).body;
  await redis.hset(gateway.broker.shards.ofId(id)?.delegation(id) ?? "", "message", '{"messageId":"m",');
  const ui = client("t");
  ui.say("go", "m");
  const found = await glance(ui);
  expect(found).toMatch(/^dlg_/);
  expect(found).not.toBe(id);
});

describe("a thread whose name others use", () => {
  test("is searched by the caller's own delegations, of which there are fewer", async () => {
    const { url, gateway } = await setup();
    const { shards, bulk } = gateway.broker;
    const operator = api(url);
    const mine = (await operator.delegate("scout", { context_id: "t", task: "go" })).body;
    const context = shards.ofId(mine.id)?.list("context:t") ?? "";
    await fill(gateway.broker, [context], mine, 2_000);
    const scans = vi.spyOn(bulk, "zrevrangebyscore");
    const ui = agUi(url, OPERATOR, "t");
    expect(await glance(ui, props({ attach: true }))).toBe(mine.id);
    ui.say("new work", "m");
    await glance(ui);
    expect(scans.mock.calls.map(([key]) => key)).not.toContain(context);
    expect(scans.mock.calls.length).toBeLessThan(10);
  });

  test("and that has many of the caller is searched up to a bound", async () => {
    const { url, gateway } = await setup();
    const { shards, bulk } = gateway.broker;
    const mine = (await api(url).delegate("scout", { context_id: "t", task: "go" })).body;
    const keys = shards.ofId(mine.id);
    const lists = ["context:t", "delegator:operator"].map((name) => keys?.list(name) ?? "");
    await fill(gateway.broker, lists, mine, 6_000);
    const scans = vi.spyOn(bulk, "zrevrangebyscore");
    const ui = agUi(url, OPERATOR, "t");
    ui.say("new work", "m");
    expect(await glance(ui)).not.toBe(mine.id);
    // A scan reads a hundred entries, one of which the scan before may have read.
    expect(scans.mock.calls.length).toBeGreaterThanOrEqual(30);
    expect(scans.mock.calls.length).toBeLessThan(70);
  });

  /** Adds newer delegations to lists. They are deleted, so that each is read and none matches. */
  async function fill(
    { shards, redis }: World["gateway"]["broker"],
    lists: readonly string[],
    { created_at }: { readonly created_at: string },
    count: number,
  ): Promise<void> {
    const entries = Array.from({ length: count }, (_, n) => [
      Date.parse(created_at) + 1 + n,
      shards.newDelegationId("scout"),
    ]);
    for (const list of lists) await redis.zadd(list, ...entries.flat());
  }
});

test("a cancel without messages is for the newest live delegation, not for one that has ended", async () => {
  const { client, alice } = await setup();
  const made = async () => (await alice.delegate("scout", { context_id: "t" })).body;
  const older = await made();
  const newest = await made();
  await alice.cancel(newest.id);
  expect((await client("t").run(props({ cancel: true }))).last.outcome).toEqual({ type: "cancelled" });
  expect((await alice.get(older.id)).body.state).toBe("canceled");
  // Without a live one, it changes nothing.
  const again = await client("t").run(props({ cancel: true }));
  expect(again.events[0].metadata.errand.delegation_id).toBe(newest.id);
});

/** What Redis sent on this connection; 0 on a Cluster, which has several. */
const bytesRead = (redis: Redis): number => ("stream" in redis ? redis.stream.bytesRead : 0);

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
