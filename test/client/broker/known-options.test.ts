/** What plain JavaScript gets wrong, and what a delegator learns when a part is refused. */
import { expect, test } from "vitest";
import { Agent } from "../../../src/client/agent.ts";
import { Delegator } from "../../../src/client/delegator.ts";
import { as, client, startBroker } from "../../support/broker.ts";

async function setup() {
  const { url } = await startBroker();
  const api = client(url);
  for (const name of ["lead", "smith"]) await api.agent(name);
  const alice = await as(url, "caller:alice");
  return { url, api, delegator: new Delegator({ url, token: alice.token }) };
}

/** As without a compiler. */
const untyped = (options: object): ReturnType<typeof JSON.parse> => options;

test.each<[string, string]>([
  ["ttl_seconds", "did you mean ttlSeconds?"],
  ["ttlSecond", "did you mean ttlSeconds?"],
  ["budget", "budget is a member of the first argument"],
  ["maxAttempts", "max_attempts is a member of the first argument"],
  ["frobnicate", "it has idempotencyKey, waitSeconds, parentId"],
])("delegate refuses the option %s, and %s", async (name, advice) => {
  const { api, delegator } = await setup();
  const refused = delegator.delegate({ target: "smith", task: "x" }, untyped({ [name]: 7 }));
  await expect(refused).rejects.toThrow(`delegate has no option ${name}: ${advice}`);
  await expect(refused).rejects.toBeInstanceOf(TypeError);
  expect((await api.call("GET", "/v1/delegations")).body.delegations).toEqual([]);
});

test("so do the other calls", async () => {
  const { delegator } = await setup();
  const { id } = await delegator.delegate({ target: "smith", task: "x" });
  const wrong = untyped({ timeout: 1 });
  const message = (call: string) => `${call} has no option timeout`;
  await expect(delegator.wait(id, wrong)).rejects.toThrow("did you mean timeoutSeconds?");
  await expect(delegator.get(id, wrong)).rejects.toThrow(message("get"));
  await expect(delegator.cancel(id, "no", wrong)).rejects.toThrow(message("cancel"));
  await expect(delegator.answer(id, null, "x", wrong)).rejects.toThrow(message("answer"));
  await expect(delegator.approve(id, wrong)).rejects.toThrow(message("approve"));
  await expect(delegator.nodes(id, wrong)).rejects.toThrow(message("nodes"));
  for (const generator of [delegator.watch(id, wrong), delegator.list({}, wrong), delegator.tree(id, wrong)])
    await expect(generator.next()).rejects.toThrow("has no option timeout");
  expect(() => delegator.results(wrong)).toThrow(message("results"));
  expect((await delegator.get(id, { waitSeconds: 0 })).state).toBe("submitted");
});

test("a part that is refused for now fails the work with a reason that a person can read", async () => {
  const { url, api, delegator } = await setup();
  await api.agent("smith", { limits: { max_waiting: 1 } });
  await api.delegate("smith");
  const { token } = await as(url, "agent:lead");
  const agent = new Agent({ url, token, agent: "lead", once: true, onError: () => {} }, async (work) => {
    await work.delegate({ target: "smith", task: "forge it" });
  });
  const ran = agent.run();
  const { id } = await delegator.delegate({ target: "lead", task: "build it" });
  await ran;
  const { state, error } = await delegator.get(id);
  expect(state).toBe("failed");
  expect(error?.message).toMatch(
    /^A call of the agent to the broker failed: The agent's queue is full \(queue_full(, retry after \d+ s)?\)\.$/,
  );
});
