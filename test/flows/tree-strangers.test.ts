/** What the delegator of a root may not do in its tree, and what a new agent with the name of a deleted one does not see. */
import { expect, test } from "vitest";
import { as, client, startBroker } from "../support/broker.ts";

async function setup() {
  const broker = await startBroker();
  const admin = client(broker.url);
  for (const name of ["lead", "scout", "smith"]) await admin.agent(name, { tree_reads: "contents" });
  const principals = ["agent:lead", "agent:scout", "caller:alice"].map((who) => as(broker.url, who));
  const [lead, scout, alice] = await Promise.all(principals);
  if (!lead || !scout || !alice) throw new Error("no principals");
  return { ...broker, admin, lead, scout, alice };
}

test("who may read a part by its agent's setting may not delegate under it", async () => {
  const { alice, scout } = await setup();
  const root = (await alice.delegate("scout")).body.id;
  const part = (await scout.delegate("smith", { parent_id: root })).body.id;
  expect((await alice.get(part)).status).toBe(200);
  const child = await alice.delegate("lead", { parent_id: part });
  expect(child).toMatchObject({ status: 403, body: { code: "forbidden", delegation_id: part } });
  expect((await alice.delegate("lead", { parent_id: root })).status).toBe(202);
});

test("a new agent does not see what is delegated under the root of a deleted one of its name", async () => {
  const { url, admin, lead, scout } = await setup();
  const root = (await lead.delegate("scout")).body.id;
  const part = (await scout.delegate("smith", { parent_id: root, task: "before" })).body.id;
  await admin.call("DELETE", "/v1/agents/lead?force=true");
  await admin.agent("lead");
  const renewed = await as(url, "agent:lead");
  const late = (await scout.delegate("smith", { parent_id: root, task: "after" })).body.id;
  for (const id of [root, part, late]) {
    expect((await renewed.get(id)).body.code).toBe("delegation_not_found");
    expect((await renewed.call("GET", `/v1/delegations/${id}/tree`)).body.code).toBe("delegation_not_found");
  }
  expect((await scout.call("GET", `/v1/delegations/${root}/tree`)).body.nodes).toHaveLength(3);
});
