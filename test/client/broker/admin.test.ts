/** The operator's library with a real broker. */
import { expect, test } from "vitest";
import { Admin, Delegator } from "../../../src/index.ts";
import { as, OPERATOR, startBroker } from "../../support/broker.ts";

test("a paused agent gets no work until it is resumed", async () => {
  const { url } = await startBroker();
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const admin = new Admin({ url, token: OPERATOR });
  expect((await admin.pauseAgent("scout")).paused).toBe(true);
  const { id } = await new Delegator({ url, token: OPERATOR }).delegate({ target: "scout", task: "x" });
  expect((await scout.lease("scout", { wait_seconds: 0.2 })).body.leases).toEqual([]);
  expect((await admin.resumeAgent("scout")).paused).toBe(false);
  expect((await scout.lease("scout")).body.leases).toMatchObject([{ delegation: { id } }]);
});

test("a session is opened with a token or a code, listed and revoked", async () => {
  const { url } = await startBroker();
  const { token } = await as(url, "caller:alice");
  const alice = new Admin({ url, token });
  const mine = await alice.createSession();
  const { code } = await alice.createSessionCode();
  // A token that is not valid any more is not sent with a code.
  const other = await new Admin({ url, token: "errand_old" }).createSession({ code });
  const again = new Admin({ url }).createSession({ code });
  await expect(again).rejects.toMatchObject({
    code: "unauthenticated",
    recovery: expect.stringContaining("Request a new code"),
  });
  const signedIn = new Admin({ url, token: other.token });
  const listed: string[] = [];
  for await (const { id, current } of signedIn.sessions({ pageSize: 1 }))
    listed.push(`${id} ${current ? "current" : ""}`.trim());
  expect(listed.sort()).toEqual([mine.id, `${other.id} current`].sort());
  await signedIn.revokeSession(mine.id);
  await expect(new Admin({ url, token: mine.token }).createSessionCode()).rejects.toMatchObject({
    code: "unauthenticated",
  });
  await signedIn.revokeSession(other.id);
  for await (const one of alice.sessions()) throw new Error(`still there: ${one.id}`);
});

test("createAgent leaves an agent that exists as it is", async () => {
  const { url } = await startBroker();
  const admin = new Admin({ url, token: OPERATOR });
  expect((await admin.createAgent("scout", { description: "first" })).created).toBe(true);
  await expect(admin.createAgent("scout", { description: "second" })).rejects.toMatchObject({
    code: "precondition_failed",
  });
  expect((await admin.getAgent("scout")).description).toBe("first");
});

test("status names the principal; what happens after cursor() is watched from it", async () => {
  const { url } = await startBroker();
  const alice = await as(url, "caller:alice");
  const connection = { url, token: alice.token };
  expect(await new Admin(connection).status()).toMatchObject({ principal: "caller:alice", redis: null });
  const delegator = new Delegator(connection);
  await new Admin({ url, token: OPERATOR }).createAgent("scout");
  await delegator.delegate({ target: "scout", task: "before" });
  const after = await delegator.cursor();
  const { id } = await delegator.delegate({ target: "scout", task: "after" });
  for await (const event of delegator.watch({}, { after })) {
    expect(event).toMatchObject({ type: "DELEGATION_SENT", delegation_id: id });
    break;
  }
});
