/** The tools through the client of `@modelcontextprotocol/sdk`, the first generation of the SDK. */
import { expect, test } from "vitest";
import { as, startBroker } from "../../support/broker.ts";
import { firstClient, toolOutput } from "../../support/mcp.ts";
import { callEveryTool } from "../../support/mcp-story.ts";

test("the first generation's client delegates, gets progress and the answer", async () => {
  const { url } = await startBroker();
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const alice = await as(url, "caller:alice");
  const { client } = await firstClient(url, alice.token);
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toContain("delegate_task");
  const messages: unknown[] = [];
  const called = client.callTool(
    { name: "delegate_task", arguments: { agent: "scout", task: "look" } },
    undefined,
    { onprogress: ({ message }) => messages.push(message) },
  );
  const { body } = await scout.lease("scout");
  await scout.reply(body.leases[0].lease_id, { text: "seen" });
  expect(toolOutput(await called).data).toMatchObject({ state: "completed", reply: { text: "seen" } });
  expect(messages.length).toBeGreaterThan(0);
  // The client checks outputs against the tool's output schema, including errors.
  const unknown = await client.callTool({ name: "delegate_task", arguments: { agent: "nobody", task: "x" } });
  expect(toolOutput(unknown)).toMatchObject({ isError: true, data: { error: { code: "agent_unknown" } } });
});

test("the first generation's client calls every tool", async () => {
  const { url } = await startBroker();
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const alice = await as(url, "caller:alice");
  const by = async (token: string) => {
    const { client } = await firstClient(url, token);
    // From now on the client checks each output against the tool's schema.
    await client.listTools();
    return async (name: string, args: Record<string, unknown>) => {
      const { data, isError, text } = toolOutput(await client.callTool({ name, arguments: args }));
      expect(isError, text).toBe(false);
      return data;
    };
  };
  await callEveryTool(await by(alice.token), await by(scout.token));
});
