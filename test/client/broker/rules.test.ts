/** The library's rules against a real gateway. */
import { expect, test } from "vitest";
import { Rules } from "../../../src/index.ts";
import { as, client, OPERATOR, startBroker } from "../../support/broker.ts";

test("creates, lists, reads and revokes rules", async () => {
  const { url } = await startBroker();
  const api = client(url);
  for (const agent of ["scout", "coder"]) await api.agent(agent);
  const { token } = await as(url, "caller:alice");
  const rules = new Rules({ url, token });
  const rule = { agent: "scout", action: "fs.write", decision: "approve" } as const;
  const made = await rules.create({ ...rule, for_seconds: 60, max_uses: 3 }, { idempotencyKey: "k" });
  expect(made).toMatchObject({ ...rule, by: "caller:alice", state: "active", uses: 0, max_uses: 3 });
  expect(await rules.create({ ...rule, for_seconds: 60, max_uses: 3 }, { idempotencyKey: "k" })).toEqual(
    made,
  );
  const other = await rules.create({ ...rule, agent: "coder", arguments: [{ name: "n", maximum: 3 }] });
  expect(await rules.list({ pageSize: 1 })).toEqual([made, other]);
  expect(await rules.list({ agent: "coder" })).toEqual([other]);
  await rules.revoke(made.id);
  expect(await rules.get(made.id)).toMatchObject({ state: "revoked" });
  expect(await new Rules({ url, token: OPERATOR }).list()).toHaveLength(2);
  await api.call("PATCH", "/v1/agents/scout", { approvals: "person" });
  await expect(rules.create(rule)).rejects.toMatchObject({ code: "approval_required" });
  await expect(rules.revoke(`rul_${"0".repeat(26)}`)).rejects.toMatchObject({ code: "not_found" });
});
