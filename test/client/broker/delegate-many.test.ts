/** Delegating many at once, with a real broker. */
import { describe, expect, test } from "vitest";
import { Delegator } from "../../../src/index.ts";
import { as, startBroker } from "../../support/broker.ts";
import { losingAnswers } from "../lossy-fetch.ts";

/** A broker with the agent scout, and a caller. */
async function setup() {
  const { url } = await startBroker();
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const alice = await as(url, "caller:alice");
  const delegator = new Delegator({ url, token: alice.token });
  return { url, scout, alice, delegator };
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

describe("many delegations", () => {
  test("are each accepted or refused individually, in order, over more than one request", async () => {
    const { delegator } = await setup();
    const inputs = Array.from({ length: 120 }, (_, n) => ({
      target: n === 110 ? "nobody" : "scout",
      task: n < 6 ? "x".repeat(250_000) : String(n),
      ...(n === 7 && { priority: 12 }),
    }));
    const results = await delegator.delegateMany(inputs);
    expect(results).toHaveLength(120);
    const codes = results.flatMap(({ error }, at) => (error ? [[at, error.code]] : []));
    expect(codes).toEqual([
      [7, "invalid_request"],
      [110, "agent_unknown"],
    ]);
    expect(results[119]?.delegation?.task_preview).toBe("119");
    expect((await all(delegator.list({}, { pageSize: 100 }))).length).toBe(118);
  });

  test("are accepted once although a response got lost, and a full queue says when to retry", async () => {
    const { url, alice, scout, delegator } = await setup();
    await scout.agent("scout", { limits: { max_waiting: 2 } });
    const fetch = losingAnswers((call) => call.endsWith("/batch"), 2);
    const unlucky = new Delegator({ url, token: alice.token, fetch });
    const [a, b, c] = await unlucky.delegateMany(["a", "b", "c"].map((task) => ({ target: "scout", task })));
    expect(fetch.lost).toHaveLength(2);
    expect((await all(delegator.list())).map(({ id }) => id).sort()).toEqual(
      [a?.delegation?.id, b?.delegation?.id].sort(),
    );
    expect(c?.error).toMatchObject({ code: "queue_full", retryable: true });
    expect(c?.error?.retryAfterMs).toBeGreaterThan(0);
  });

  test("that cannot be sent at all each report the reason", async () => {
    const { url } = await setup();
    const stranger = new Delegator({ url, token: "errand_wrong" });
    const results = await stranger.delegateMany([
      { target: "scout", task: "a" },
      { target: "scout", task: "b" },
    ]);
    expect(results.map(({ error }) => error?.code)).toEqual(["unauthenticated", "unauthenticated"]);
  });
});
