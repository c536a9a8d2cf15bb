/** What a tool that changes a delegation returns. */
import { expect, test } from "vitest";
import { as, client, OPERATOR, startBroker } from "../../support/broker.ts";
import { callModern, toolOutput } from "../../support/mcp.ts";

test("the result of a change counts the artifacts, and does not repeat them", async () => {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const { id } = (await api.delegate("scout")).body;
  const { lease_id } = (await (await as(url, "agent:scout")).lease("scout")).body.leases[0];
  const artifact = { artifact: { artifactId: "a", parts: [{ text: "a long draft" }] } };
  expect((await api.call("POST", `/v1/leases/${lease_id}/artifacts`, artifact)).status).toBeLessThan(300);
  const call = async (name: string, args: Record<string, unknown>) =>
    toolOutput((await callModern(url, OPERATOR, name, { delegation_id: id, ...args })).body.result);
  for (const [name, args] of [
    ["send_follow_up", { text: "shorter" }],
    ["cancel_task", {}],
  ] as const) {
    const { data, text } = await call(name, args);
    expect(data).toMatchObject({ delegation_id: id, artifacts_omitted: 1 });
    expect(data).not.toHaveProperty("artifacts");
    expect(text).toContain("[1 artifact not shown]");
  }
  expect((await call("check_task_status", {})).text).toContain("a long draft");
});
