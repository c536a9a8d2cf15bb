/** Approvals of several people by answers that arrive one request at a time: each person answers for themselves. */
import { expect, test } from "vitest";
import { as, client, startBroker } from "../support/broker.ts";
import { requestModern, TASKS_CAPABILITY } from "../support/mcp.ts";

const APPROVE = { decision: "approve" };
const DENY = { decision: "deny" };
const plain = (request_id: string) => ({ request_id, text: `May I do ${request_id}?` });
const deploy = (request_id: string) => ({
  ...plain(request_id),
  action: { name: "deploy", arguments: { to: "prod" } },
  edit: true,
});

async function setup(
  votes: Record<string, unknown> | null,
  request: (id: string) => Record<string, unknown> = deploy,
) {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout", { votes });
  const scout = await as(url, "agent:scout");
  const alice = await as(url, "caller:alice");
  const [ann, bob] = [await as(url, "approver:ann"), await as(url, "approver:bob")];
  const { id } = (await alice.delegate("scout")).body;
  const [{ lease_id }] = (await scout.lease("scout")).body.leases;
  const { interrupt_id } = (await scout.interrupt(lease_id, { requests: [request("a"), request("b")] })).body;
  const call = async (who: typeof ann, method: string, params: Record<string, unknown>) =>
    (await requestModern(url, who.token, method, params, { capabilities: TASKS_CAPABILITY })).body;
  const part = (who: typeof ann, answers: Record<string, unknown>) => {
    const forms = Object.entries(answers).map(([key, content]) => [
      `${interrupt_id}:${key}`,
      { action: "accept", content },
    ]);
    return call(who, "tasks/update", { taskId: id, inputResponses: Object.fromEntries(forms) });
  };
  const forms = async (who: typeof ann) =>
    Object.keys((await call(who, "tasks/get", { taskId: id })).result.inputRequests ?? {}).length;
  const now = async () => (await api.get(id)).body;
  const given = async () =>
    (await now()).interrupt?.votes.given.map(({ by }: { by: string }) => by.split(":")[1]);
  return { api, alice, ann, bob, part, forms, now, given, id, interrupt_id };
}

test("nobody approves what another person has answered, also where no vote was expected", async () => {
  const { ann, bob, part, forms, given, now } = await setup({ needed: 2 }, plain);
  await part(ann, { a: APPROVE });
  expect([await forms(ann), await forms(bob)]).toEqual([1, 2]);
  await part(bob, { b: APPROVE });
  expect((await now()).interrupt).not.toHaveProperty("votes");
  await part(ann, { b: APPROVE });
  expect(await given()).toEqual(["ann"]);
  await part(bob, { a: APPROVE });
  expect((await now()).state).toBe("submitted");
});

test("the delegator's part is no approval if the agent has got `votes` since", async () => {
  const { api, alice, ann, part, now } = await setup(null);
  await part(alice, { a: APPROVE });
  await api.call("PATCH", "/v1/agents/scout", { votes: { not_by_delegator: true } });
  await part(ann, { b: APPROVE });
  expect((await now()).state).toBe("input_required");
  await part(ann, { a: APPROVE });
  expect((await now()).state).toBe("submitted");
});

test("after an approval the same person can agree with another one, and deny", async () => {
  const { ann, bob, part, given, now, id, interrupt_id } = await setup({ needed: 3 });
  await part(ann, { a: APPROVE, b: APPROVE });
  await bob.answer(id, interrupt_id, { answers: { a: { ...APPROVE, data: { to: "staging" } }, b: APPROVE } });
  await part(ann, { a: { ...APPROVE, arguments: '{"to":"staging"}' }, b: APPROVE });
  expect(await given()).toEqual(["bob", "ann"]);
  await part(ann, { a: DENY, b: DENY });
  expect((await now()).state).toBe("submitted");
});

test("an approval that does not count is forgotten, so that its sender can deny", async () => {
  const { alice, part, forms, now } = await setup({ not_by_delegator: true });
  expect((await part(alice, { a: APPROVE, b: APPROVE })).error.data.code).toBe("forbidden");
  expect(await forms(alice)).toBe(2);
  await part(alice, { a: DENY, b: DENY });
  expect((await now()).state).toBe("submitted");
});
