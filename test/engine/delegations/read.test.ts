/** The commands that a wait for a delegation sends to Redis. The tests of flows check the answer. */
import { expect, test, vi } from "vitest";
import type { Entry } from "../../../src/events/entry.ts";
import { client, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

test("a waiting caller is answered by this gateway's own move, even if the feed is faster", async () => {
  const { url, gateway } = await startBroker();
  const { redis, feed } = gateway.broker;
  const api = client(url);
  await api.agent("scout");
  const answered = api.delegate("scout", {}, { prefer: "wait=20" });
  const { delegation, lease_id } = (await api.lease("scout", { wait_seconds: 20 })).body.leases[0];

  let told = 0;
  // Earlier events may arrive only now.
  const push = ({ type }: Entry) => {
    if (type === "DELEGATION_COMPLETE") told += 1;
  };
  feed.subscribe({ kind: "all" }, { push, gap: () => {} });
  // The answer to the move waits for the feed; reads of the delegation are counted from then on.
  const evalsha = redis.evalsha.bind(redis);
  let asked = 0;
  vi.spyOn(redis, "evalsha").mockImplementation(async (...args) => {
    const isOurs = args.some((arg) => String(arg).includes(delegation.id));
    if (isOurs && told > 0) asked += 1;
    const answer = await evalsha(...args);
    if (isOurs) await until(() => told > 0);
    return answer;
  });
  expect((await api.reply(lease_id, { text: "done" })).status).toBe(200);
  const { status, body } = await answered;
  expect([status, body.state]).toEqual([200, "completed"]);
  expect(told).toBe(1);
  expect(asked).toBe(0);
});
