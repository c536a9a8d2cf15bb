/** The library's subscriptions against a real gateway. */
import { expect, test } from "vitest";
import { Subscriptions } from "../../../src/index.ts";
import { OPERATOR } from "../../support/broker.ts";
import { startReceiver } from "../../support/receiver.ts";
import { bodies, startSubscribed } from "../../support/subscribed.ts";

test("creates, lists, reads, changes, tests, resumes and deletes subscriptions", async () => {
  const { url, ann } = await startSubscribed();
  const { url: hook, received } = await startReceiver((count) => (count === 1 ? 204 : 500));
  const subscriptions = new Subscriptions({ url, token: ann.token });
  const deliver = [{ kind: "webhook", url: hook, token: "let-me-in" } as const];
  const made = await subscriptions.create({ events: ["question"], deliver });
  expect(made).toMatchObject({ owner: "approver:ann", deliver: [{ kind: "webhook", state: "ok" }] });
  expect(JSON.stringify(made)).not.toContain("let-me-in");
  const other = await subscriptions.create({ events: ["ended"], deliver, name: "ends" });
  const changed = await subscriptions.update(made.id, { digest_above: 3 });
  expect(changed).toMatchObject({ events: ["question"], digest_above: 3 });
  expect((await subscriptions.list({ pageSize: 1 })).map(({ id }) => id)).toEqual([made.id, other.id]);
  expect(await subscriptions.test(made.id)).toEqual({
    deliver: [{ kind: "webhook", delivered: true, problem: null }],
  });
  expect(bodies(received)).toMatchObject([{ type: "test", subscription_id: made.id }]);
  const failed = await subscriptions.test(made.id);
  expect(failed.deliver).toMatchObject([{ delivered: false, problem: expect.stringContaining("500") }]);
  expect(await subscriptions.resume(made.id)).toMatchObject({ id: made.id, deliver: [{ state: "ok" }] });
  await subscriptions.delete(other.id);
  expect(await new Subscriptions({ url, token: OPERATOR }).list()).toHaveLength(1);
  await expect(subscriptions.get(other.id)).rejects.toMatchObject({ code: "not_found" });
  expect(await subscriptions.webPushKey()).toMatch(/^[\w-]{87}$/);
});
