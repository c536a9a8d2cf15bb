/** The request that is spliced from stored text equals one that is built from its parts. */
import { expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";

const text = (value: string) => ({ parts: [{ text: value }] });

test.each([
  ["plain", text("do it")],
  ["ends like a stored message", text('"delegation_id":"dlg_0_x"}}')],
  ["ends like a stored message, escaped", text('\\"delegation_id\\":\\"dlg_0_x\\"}}')],
  ["beyond ASCII", text("\u2028 \ud83d\ude00 \u0000 \u00e9")],
  ["large", text("x}}".repeat(200_000))],
  ["ids within parts", { parts: [{ data: { taskId: "t", contextId: "c", lease_id: "l" } }] }],
  ["ids of its own", { ...text("a"), taskId: "old", contextId: "ctx_own" }],
  ["a forged lease_id", { ...text("a"), metadata: { lease_id: "forged", other: { lease_id: "kept" } } }],
  ["a forged delegation_id", { ...text("a"), metadata: { delegation_id: "forged", z: 1 } }],
])("%s", async (_, message) => {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const { id, context_id } = (await api.delegate("scout", { message })).body;
  const answer = await fetch(`${url}/v1/agents/scout/leases`, {
    method: "POST",
    headers: { authorization: `Bearer ${OPERATOR}`, "content-type": "application/json" },
    body: "{}",
  });
  const json = await answer.text();
  const [{ lease_id, request }] = JSON.parse(json).leases;
  const own: Record<string, unknown> = { metadata: {}, ...message };
  const { taskId: _dropped, ...said } = own;
  expect(request.params.message).toEqual({
    ...said,
    role: "ROLE_USER",
    messageId: expect.any(String),
    contextId: context_id,
    metadata: { ...Object(own.metadata), delegation_id: id, lease_id },
  });
  // No member appears twice: parsers differ in which of the two they use.
  const metadata = json.slice(json.lastIndexOf('"metadata":', json.indexOf(`"lease_id":"${lease_id}"}`)));
  expect(metadata.split(`"lease_id":"forged"`)).toHaveLength(1);
});
