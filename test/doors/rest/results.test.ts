/** The inbox: a delegator's results, each once after its cursor. */
import { describe, expect, test } from "vitest";
import { as } from "../../support/broker.ts";
import { setup } from "./two-callers.ts";

describe("the inbox", () => {
  test("has the caller's finished delegations with replies, each once after its cursor", async () => {
    const { alice, bob, finish } = await setup();
    const a1 = (await alice.delegate("scout")).body.id;
    await bob.delegate("scout");
    await alice.delegate("other");
    await finish("scout", { text: "one" });
    await finish("scout", { text: "two" });
    const first = (await alice.call("GET", "/v1/results")).body;
    expect(first.results).toMatchObject([
      { id: a1, state: "completed", reply: { parts: [{ text: "one" }] } },
    ]);
    const empty = (await alice.call("GET", `/v1/results?after=${first.cursor}`)).body;
    expect(empty.results).toEqual([]);
    const waiting = alice.call("GET", `/v1/results?after=${empty.cursor}&wait_seconds=10`);
    const a3 = await finish("other", { state: "rejected", text: "not mine" });
    const next = (await waiting).body;
    expect(next.results).toMatchObject([{ id: a3, state: "rejected", error: { code: "rejected" } }]);
    expect((await alice.call("GET", `/v1/results?after=${next.cursor}`)).body.results).toEqual([]);
  });

  test("has a delegation that asked, was answered and finished once, in its current state", async () => {
    const { admin, alice } = await setup();
    const { id } = (await alice.delegate("scout")).body;
    const lease = (await admin.lease("scout")).body.leases[0].lease_id;
    const { interrupt_id } = (await admin.interrupt(lease, { text: "which?" })).body;
    const asked = (await alice.call("GET", "/v1/results")).body;
    expect(asked.results).toMatchObject([{ id, state: "input_required" }]);
    await alice.answer(id, interrupt_id, { text: "this" });
    await admin.reply((await admin.lease("scout")).body.leases[0].lease_id);
    const { results, cursor } = (await alice.call("GET", "/v1/results")).body;
    expect(results).toMatchObject([{ id, state: "completed" }]);
    expect(results).toHaveLength(1);
    const later = (await alice.call("GET", `/v1/results?after=${asked.cursor}`)).body;
    expect(later.results).toMatchObject([{ id, state: "completed" }]);
    expect((await alice.call("GET", `/v1/results?after=${cursor}`)).body.results).toEqual([]);
  });

  test("exists for an agent that delegates too, apart from the work it does", async () => {
    const { url, admin, finish } = await setup();
    const scout = await as(url, "agent:scout");
    await admin.delegate("scout");
    await finish("scout");
    const mine = (await scout.delegate("other")).body.id;
    await finish("other");
    const { results } = (await scout.call("GET", "/v1/results")).body;
    expect(results.map(({ id }: { id: string }) => id)).toEqual([mine]);
  });
});
