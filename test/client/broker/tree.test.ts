/** Walking a tree of delegations, with a real broker. */
import { expect, test } from "vitest";
import { Delegator } from "../../../src/index.ts";
import { as, OPERATOR, startBroker } from "../../support/broker.ts";

/** A broker with the agents scout and smith, a caller, and the operator. */
async function setup() {
  const { url } = await startBroker();
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const smith = await as(url, "agent:smith");
  await smith.agent("smith");
  const alice = await as(url, "caller:alice");
  const delegator = new Delegator({ url, token: alice.token });
  const operator = new Delegator({ url, token: OPERATOR });
  return { url, scout, smith, delegator, operator };
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

test("a tree is walked level by level, the oldest first, as far as the principal may see", async () => {
  const { url, delegator, operator, scout, smith } = await setup();
  const lead = new Delegator({ url, token: scout.token });
  const maker = new Delegator({ url, token: smith.token });
  await operator.cancel((await delegator.delegate({ target: "smith", task: "not of it" })).id);
  const root = await delegator.delegate({ target: "scout", task: "root" });
  const a = await lead.delegate({ target: "smith", task: "a" }, { parentId: root.id });
  const b = await lead.delegate({ target: "smith", task: "b" }, { parentId: root.id });
  await operator.delegate({ target: "smith", task: "aa" }, { parentId: a.id });
  await operator.delegate({ target: "smith", task: "ba" }, { parentId: b.id });
  await operator.delegate({ target: "smith", task: "bb" }, { parentId: b.id });
  const walked = (from: Delegator, id: string) =>
    all(from.tree(id, { pageSize: 1 })).then((found) =>
      found.map(({ delegation, depth }) => `${depth} ${delegation.task_preview}`),
    );
  expect(await walked(operator, root.id)).toEqual(["0 root", "1 a", "1 b", "2 aa", "2 ba", "2 bb"]);
  expect(await walked(delegator, root.id)).toEqual(["0 root"]);
  expect(await walked(maker, b.id)).toEqual(["0 b", "1 ba", "1 bb"]);
});
