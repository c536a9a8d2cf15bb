/** Votes by the library, with a real broker. */
import { expect, test } from "vitest";
import { Delegator } from "../../../src/index.ts";
import { as, client, startBroker } from "../../support/broker.ts";

async function setup() {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout", { votes: { needed: 2 } });
  const people = await Promise.all(["approver:ann", "approver:bob"].map((name) => as(url, name)));
  const [ann, bob] = people.map(({ token }) => new Delegator({ url, token }));
  if (!ann || !bob) throw new Error("no tokens");
  const { id } = await new Delegator({ url, token: (await as(url, "caller:alice")).token }).delegate({
    target: "scout",
    task: "scale",
  });
  const [lease] = (await api.lease("scout")).body.leases;
  const action = { name: "scale", arguments: { replicas: 3 } };
  await api.interrupt(lease.lease_id, { text: "Scale it?", action, edit: true });
  return { api, ann, bob, id };
}

test("a loop that answers what it waits for votes once, and goes on with the approval of another", async () => {
  const { api, ann, bob, id } = await setup();
  let votes = 0;
  const loop = (async () => {
    for (;;) {
      const found = await ann.wait(id, { timeoutSeconds: 20 });
      if (found.interrupt === null) return found;
      votes += 1;
      expect(await ann.approve(id)).toMatchObject({
        state: "input_required",
        interrupt: { votes: { given: [{ by: "approver:ann" }] } },
      });
    }
  })();
  const given = async () => (await api.get(id)).body.interrupt?.votes.given.length === 1;
  await expect.poll(given).toBe(true);
  expect((await bob.approve(id)).state).toBe("submitted");
  const [lease] = (await api.lease("scout")).body.leases;
  await api.reply(lease.lease_id, { text: "scaled" });
  expect((await loop).state).toBe("completed");
  expect(votes).toBe(1);
});

test("when another approval voids the vote, the wait returns the question, and who agrees sends the same", async () => {
  const { ann, bob, id } = await setup();
  await ann.approve(id);
  const waiting = ann.wait(id, { timeoutSeconds: 20 });
  await bob.approve(id, { data: { replicas: 5 } });
  const { interrupt } = await waiting;
  expect(interrupt?.votes?.given).toMatchObject([{ by: "approver:bob" }]);
  const answers = interrupt?.votes?.answers ?? {};
  expect(Object.values(answers)).toEqual([{ decision: "approve", data: { replicas: 5 } }]);
  expect((await ann.answer(id, interrupt?.id ?? null, { answers })).state).toBe("submitted");
});

test("a wait after a vote ends with its time", async () => {
  const { ann, id } = await setup();
  await ann.approve(id);
  await expect(ann.wait(id, { timeoutSeconds: 0.2 })).rejects.toMatchObject({ code: "wait_ran_out" });
});
