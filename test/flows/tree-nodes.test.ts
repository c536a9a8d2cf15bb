/** The delegator of a root sees and watches its whole tree; contents by a setting of the agent. */
import { expect, test } from "vitest";
import { Delegator, type TreeEvent } from "../../src/index.ts";
import { as, client, startBroker } from "../support/broker.ts";
import { until } from "../support/until.ts";

/** alice → scout → smith → other, each part delegated by the agent above it. */
async function setup(options: Parameters<typeof startBroker>[0] = {}) {
  const broker = await startBroker(options);
  const admin = client(broker.url);
  for (const name of ["scout", "smith", "other"]) await admin.agent(name);
  const [alice, bob, scout, smith] = await Promise.all(
    ["caller:alice", "caller:bob", "agent:scout", "agent:smith"].map((who) => as(broker.url, who)),
  );
  if (!alice || !bob || !scout || !smith) throw new Error("no principals");
  const id = async (answer: Promise<{ body: { id: string } }>) => (await answer).body.id;
  const root = await id(alice.delegate("scout", { task: "root" }));
  const part = await id(scout.delegate("smith", { task: "part", parent_id: root }));
  const detail = await id(smith.delegate("other", { task: "detail", parent_id: part }));
  const treeOf = async (who: ReturnType<typeof client>, top = root) =>
    (await who.call("GET", `/v1/delegations/${top}/tree`)).body;
  return { ...broker, admin, alice, bob, scout, smith, root, part, detail, treeOf };
}

const shown = (nodes: readonly { target: string; state: string; depth: number; readable: boolean }[]) =>
  nodes.map(({ target, state, depth, readable }) => [depth, target, state, readable]);

test("who delegated the root sees each part's agent and state, others only what they may read", async () => {
  const { admin, alice, bob, scout, smith, root, part, detail, treeOf } = await setup();
  expect(shown((await treeOf(alice)).nodes)).toEqual([
    [0, "scout", "submitted", true],
    [1, "smith", "submitted", false],
    [2, "other", "submitted", false],
  ]);
  expect((await treeOf(alice)).nodes[2]).toMatchObject({
    id: detail,
    parent_id: part,
    delegator: "agent:smith",
    finished_at: null,
    more_below: false,
  });
  expect((await treeOf(alice, part)).nodes.map((node: { depth: number }) => node.depth)).toEqual([0, 1]);
  expect(shown((await treeOf(scout)).nodes)).toEqual([
    [0, "scout", "submitted", true],
    [1, "smith", "submitted", true],
  ]);
  expect((await treeOf(admin)).nodes.every((node: { readable: boolean }) => node.readable)).toBe(true);
  expect((await treeOf(bob)).code).toBe("delegation_not_found");
  expect((await treeOf(smith, root)).code).toBe("delegation_not_found");
});

test("an agent's setting decides whether the contents of its part are shown", async () => {
  const { url, alice, bob, smith, root, part, detail, treeOf } = await setup();
  const unread = (await alice.get(part)).body;
  expect(unread.code).toBe("delegation_not_found");
  expect(unread.detail).toBe(
    `You may not read ${part}, which agent:scout delegated to smith; you see its state in the tree of ${root}.`,
  );
  expect(unread.recovery).toContain("tree_reads of smith to contents");
  expect((await alice.call("GET", `/v1/delegations/${part}/tree/events`)).body.detail).toBe(unread.detail);
  expect((await bob.get(part)).body.detail).toBe(`There is no delegation '${part}'.`);
  expect((await alice.call("GET", `/v1/delegations/${part}/events`)).body.code).toBe("delegation_not_found");
  await smith.call("PATCH", "/v1/agents/smith", { tree_reads: "contents" });
  expect((await alice.get(part)).body.message.parts).toEqual([{ text: "part" }]);
  expect((await alice.call("GET", `/v1/events?after=0&delegation_id=${part}`)).body.events).toHaveLength(1);
  expect((await alice.get(detail)).status).toBe(404);
  expect((await bob.get(part)).status).toBe(404);
  expect(shown((await treeOf(alice)).nodes).map(([, target, , readable]) => [target, readable])).toEqual([
    ["scout", true],
    ["smith", true],
    ["other", false],
  ]);
  const read = [];
  for await (const { delegation, depth } of new Delegator({ url, token: alice.token }).tree(root))
    read.push([depth, delegation.target]);
  expect(read).toEqual([
    [0, "scout"],
    [1, "smith"],
  ]);
  // It may read, and no more.
  expect((await alice.cancel(part)).body.code).toBe("forbidden");
});

test("the parts of others are in no list, feed or result of the root's delegator", async () => {
  const { alice, admin, root, part, detail } = await setup();
  await admin.cancel(detail);
  const events = (await alice.call("GET", "/v1/events?after=0&limit=100")).body.events;
  expect([...new Set(events.map((one: { delegation_id: string }) => one.delegation_id))]).toEqual([root]);
  expect((await alice.call("GET", "/v1/results?after=0")).body.results).toEqual([]);
  const listed = (await alice.call("GET", `/v1/delegations?parent_id=${part}`)).body.delegations;
  expect(listed).toEqual([]);
});

test("a watched tree shows each new part and each state, without contents, and resumes without a gap or a repeat", async () => {
  const { url, alice, scout, smith, admin, root, part, detail } = await setup({ shards: 3 });
  const delegator = new Delegator({ url, token: alice.token });
  const { cursor } = await delegator.nodes(root);
  const seen: TreeEvent[] = [];
  const ended = new AbortController();
  const watching = (async () => {
    for await (const event of delegator.watchNodes(root, { after: cursor, signal: ended.signal }))
      seen.push(event);
  })().catch(() => {});
  const late = (await scout.delegate("other", { task: "secret words", parent_id: root })).body.id;
  const [lease] = (await admin.lease("smith")).body.leases;
  await smith.heartbeat(lease.lease_id, { progress: { message: "secret words" } });
  await smith.call("POST", `/v1/leases/${lease.lease_id}/reply`, {
    state: "completed",
    text: "secret words",
  });
  await alice.cancel(root);
  const story = (events: readonly TreeEvent[]) =>
    events
      .flatMap((event) => (event.type === "RESET" ? [] : [`${event.delegation_id} ${event.state}`]))
      .sort();
  const expected = [
    `${late} submitted`,
    `${part} working`,
    `${part} completed`,
    `${root} canceled`,
    `${late} canceled`,
  ].sort();
  await until(() => seen.length >= expected.length);
  ended.abort();
  await watching;
  expect(story(seen)).toEqual(expected);
  expect(JSON.stringify(seen)).not.toContain("secret");
  expect(seen.find((event) => event.type !== "RESET" && event.parent_id)).toMatchObject({
    type: "DELEGATION_NODE",
    delegation_id: late,
    root_id: root,
    parent_id: root,
    seq: 1,
  });
  // In two halves, from what is stored.
  const page = async (after: string, limit: number) =>
    (await alice.call("GET", `/v1/delegations/${root}/tree/events?after=${after}&limit=${limit}`)).body;
  const first = await page(cursor, 2);
  const second = await page(first.cursor, 100);
  expect(story([...first.events, ...second.events])).toEqual(expected);
  const all = await page("0", 100);
  expect(new Set(all.events.map((one: { delegation_id: string }) => one.delegation_id))).toEqual(
    new Set([root, part, detail, late]),
  );
});

test("only a root is watched, and erased parts leave the tree", async () => {
  const { alice, admin, scout, root, part, detail, treeOf } = await setup();
  const refused = await alice.call("GET", `/v1/delegations/${part}/tree/events`);
  expect(refused.body.code).toBe("delegation_not_found");
  const told = await scout.call("GET", `/v1/delegations/${part}/tree/events`);
  expect(told.body.details.issues).toEqual([{ path: "id", reason: `its root is ${root}` }]);
  await admin.cancel(detail);
  expect((await admin.call("DELETE", `/v1/delegations/${detail}`)).status).toBe(204);
  expect((await treeOf(alice)).nodes).toHaveLength(2);
  const { events } = (await alice.call("GET", `/v1/delegations/${root}/tree/events?after=0&limit=100`)).body;
  expect(events.map((one: { delegation_id: string }) => one.delegation_id)).not.toContain(detail);
});
