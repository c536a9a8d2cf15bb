import { describe, expect, test } from "vitest";
import { as, startBroker } from "../../support/broker.ts";
import { answered, type Era, firstClient, mcpClient } from "../../support/mcp.ts";

const ERAS: readonly Era[] = ["modern", "legacy"];

describe.each(ERAS)("%s", (era) => {
  test("lists the tools and delegates", async () => {
    const { url } = await startBroker();
    const agent = await as(url, "agent:scout");
    await agent.agent("scout");
    const alice = await as(url, "caller:alice");
    const client = await mcpClient(url, alice.token, era);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain("delegate_task");
    const called = client.callTool({
      name: "delegate_task",
      arguments: { agent: "scout", task: "look" },
    });
    const { body } = await agent.lease("scout");
    await agent.reply(body.leases[0].lease_id, { text: "seen" });
    const { data, isError } = answered(await called);
    expect(isError).toBe(false);
    expect(data).toMatchObject({ state: "completed", agent: "scout", reply: { text: "seen" } });
  });
});

test("first generation", async () => {
  const { url } = await startBroker();
  const agent = await as(url, "agent:scout");
  await agent.agent("scout");
  const alice = await as(url, "caller:alice");
  const { client } = await firstClient(url, alice.token);
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toContain("delegate_task");
});
