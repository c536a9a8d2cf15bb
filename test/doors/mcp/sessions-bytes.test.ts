/** What the sessions of one principal keep, in bytes. */
import { expect, test } from "vitest";
import { LIMITS } from "../../../src/schema/limits.ts";
import { as, startBroker } from "../../support/broker.ts";
import { INITIALIZE, LEGACY, postMcp } from "../../support/mcp.ts";

test("the oldest sessions of a principal are closed beyond its bytes, and nobody else's", async () => {
  const { url } = await startBroker();
  const [alice, bob] = [await as(url, "caller:alice"), await as(url, "caller:bob")];
  // As many values as one may have, each an object: far more memory than text.
  const experimental = Object.fromEntries(
    Array.from({ length: LIMITS.mcp_message_values.value - 20 }, (_, n) => [n.toString(36), {}]),
  );
  const large = { ...INITIALIZE, params: { ...INITIALIZE.params, capabilities: { experimental } } };
  const open = async (token: string, body: object) =>
    (await postMcp(url, token, body)).headers.get("mcp-session-id") ?? "";
  const list = { jsonrpc: "2.0", id: 2, method: "tools/list", params: {} };
  const statusOf = async (token: string, id: string) =>
    (await postMcp(url, token, list, { headers: { "mcp-session-id": id, "mcp-protocol-version": LEGACY } }))
      .status;
  const other = await open(bob.token, large);
  const first = await open(alice.token, large);
  const each = 100 * (LIMITS.mcp_message_values.value - 20);
  const enough = Math.ceil(LIMITS.sessions_bytes.value / each);
  let last = "";
  for (let n = 0; n < enough; n += 1) last = await open(alice.token, large);
  expect(await statusOf(alice.token, last)).toBe(200);
  expect(await statusOf(alice.token, first)).toBe(404);
  expect(await statusOf(bob.token, other)).toBe(200);
});
