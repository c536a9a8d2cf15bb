import { expect, test } from "vitest";
import { acceptedDelegationSchema, delegationSchema } from "../../src/schema/delegation.ts";
import { leasesSchema, replySchema } from "../../src/schema/lease.ts";
import { as, client, startBroker } from "../support/broker.ts";
import { eventsOf } from "../support/history.ts";

test("a caller delegates, an agent leases, reports progress and replies, and the caller gets the reply", async () => {
  const { url } = await startBroker();
  const admin = client(url);
  expect((await admin.agent("scout")).status).toBe(201);
  const alice = await as(url, "caller:alice");
  const scout = await as(url, "agent:scout");

  const accepted = await alice.delegate("scout", { task: "how many words is this", metadata: { a: 1 } });
  expect(accepted.status).toBe(202);
  const delegation = acceptedDelegationSchema.parse(accepted.body);
  expect(delegation).toMatchObject({ state: "submitted", version: 1, delegator: "caller:alice", attempt: 1 });
  expect(accepted.headers.get("location")).toBe(`/v1/delegations/${delegation.id}`);

  const leased = await scout.lease("scout", { worker_id: "w1" });
  const [lease] = leasesSchema.parse(leased.body).leases;
  expect(lease?.delegation).toMatchObject({
    id: delegation.id,
    state: "working",
    lease: { worker_id: "w1" },
  });
  const message = lease?.request.params.message;
  expect(message?.parts).toEqual([{ text: "how many words is this" }]);
  expect(message?.metadata).toEqual({ delegation_id: delegation.id, lease_id: lease?.lease_id });
  expect(message?.contextId).toBe(delegation.context_id);

  const lease_id = lease?.lease_id ?? "";
  const beat = await scout.heartbeat(lease_id, { progress: { message: "counting", done: 1, total: 2 } });
  expect(beat).toMatchObject({ status: 200, body: { messages: [] } });

  const waiting = alice.get(delegation.id, "?wait_seconds=10");
  const replied = await scout.reply(lease_id, { text: "5" });
  expect(replySchema.parse(replied.body).outcome).toBe("matched");
  const done = delegationSchema.parse((await waiting).body);
  expect(done).toMatchObject({ state: "completed", version: 4, reply: { parts: [{ text: "5" }] } });

  const events = await eventsOf(alice, delegation.id);
  expect(events.map((event) => [event.type, event.seq, event.status])).toEqual([
    ["DELEGATION_SENT", 1, "queued"],
    ["DELEGATION_STATUS", 2, "leased"],
    ["DELEGATION_STATUS", 3, "progress"],
    ["DELEGATION_COMPLETE", 4, undefined],
  ]);
});
