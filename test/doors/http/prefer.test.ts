import { expect, test } from "vitest";
import { preferredWait } from "../../../src/doors/http/prefer.ts";
import { as, client, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

test.each([
  [undefined, 0],
  ["", 0],
  ["wait=5", 5],
  ["Wait = 5", 5],
  ['wait="5"', 5],
  ["wait=500", 60],
  ["respond-async, wait=7", 7],
  ["handling=lenient; strict=1 , wait=7;why=slow", 7],
  ["wait=3, wait=9", 3],
  ['handling="x, wait=9"', 0],
  ['handling="x\\", wait=9"', 0],
  ['handling="x\\\\", wait=9', 9],
  ["foo;wait=1", 0],
  ["foo; wait=1, bar", 0],
  ["await=4", 0],
  ["wait", 0],
  ["wait=", 0],
  ["wait=-1", 0],
  ["wait=1x", 0],
  ['wait="5', 0],
  ["wait=1000000000", 0],
])("Prefer: %s waits for %i s", (header, seconds) => {
  expect(preferredWait(header, 60)).toBe(seconds);
});

test("a delegation stays accepted when its token ends during the wait", async () => {
  const { url, gateway } = await startBroker();
  const admin = client(url);
  await admin.agent("scout");
  const alice = await as(url, "caller:alice");
  const answer = alice.delegate("scout", {}, { prefer: "wait=30" });
  const [id = ""] = await until(async () => {
    const live = await gateway.broker.agents.liveDelegations("scout");
    return live.length > 0 ? live : null;
  });
  // A token that has ended does not see later changes.
  await admin.lease("scout");
  await admin.call("DELETE", `/v1/tokens/${alice.tokenId}`);
  const { status, body, headers } = await answer;
  expect([status, body.id, body.state]).toEqual([202, id, "submitted"]);
  expect(headers.get("location")).toBe(`/v1/delegations/${id}`);
});
