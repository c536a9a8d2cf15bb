/**
 * What lasts longer than a request depends on the token it was made with: schedules and rules, at another gateway than the
 * one that made them, after the token is gone.
 */
import { expect, test } from "vitest";
import { as, client, startBroker } from "../../support/broker.ts";

const ACTION = { name: "write", arguments: { path: "/srv/a" } };
const RULE = {
  agent: "scout",
  action: "write",
  decision: "approve",
  arguments: [{ name: "path", path_prefix: "/srv" }],
};

async function ask(url: string, by: Pick<ReturnType<typeof client>, "delegate">, agents = client(url)) {
  const { id } = (await by.delegate("scout")).body;
  const [lease] = (await agents.lease("scout")).body.leases;
  expect(lease.delegation.id).toBe(id);
  await agents.interrupt(lease.lease_id, { text: "Shall I?", action: ACTION });
  const { state } = (await agents.get(id)).body;
  // So that the next lease is that of the next question.
  await agents.cancel(id);
  return state;
}

test("a replaced operator's token ends its rules, and its schedules say why they stop", async () => {
  const { url, gateway, clock, another } = await startBroker();
  const old = client(url);
  await old.agent("scout");
  const rule = (await old.call("POST", "/v1/rules", RULE)).body;
  const settings = { every_seconds: 3600, delegation: { target: "scout", task: "tidy up" } };
  const schedule = (await old.call("POST", "/v1/schedules", settings)).body;
  expect(await ask(url, old)).toBe("submitted");
  await gateway.close({ idleGrace: false });

  const next = await another({ operatorToken: "another-token-of-the-operator" });
  const api = client(next.url, "another-token-of-the-operator");
  expect(await ask(next.url, api, api)).toBe("input_required");
  expect((await api.call("GET", `/v1/rules/${rule.id}`)).body.state).toBe("revoked");
  clock.offset_ms += 3_600_000;
  await next.gateway.broker.schedules.tick();
  const path = `/v1/schedules/${schedule.id}`;
  const blocked = (await api.call("GET", path)).body;
  expect(blocked).toMatchObject({ state: "blocked", problem: { code: "unauthenticated" } });
  expect(blocked.problem.message).toContain("replaced");
  // With the new one they go on.
  await api.call("POST", `${path}/resume`);
  clock.offset_ms += 3_600_000;
  await next.gateway.broker.schedules.tick();
  const [run] = (await api.call("GET", `${path}/runs`)).body.runs;
  expect(run).toMatchObject({ skipped: null });
  await api.cancel(run.delegation_id);
  await api.call("POST", "/v1/rules", RULE);
  expect(await ask(next.url, api, api)).toBe("submitted");
});

test.each(["approver:max", "caller:max", "agent:max"])(
  "no gateway answers by a rule of %s once it is removed",
  async (principal) => {
    const { url, another } = await startBroker();
    const other = await another();
    const api = client(url);
    await api.agent("scout");
    await api.agent("max");
    // Two tokens of the principal: its rules end with either.
    const [one, two] = [await as(url, principal), await as(url, principal)];
    const made = [await one.call("POST", "/v1/rules", RULE), await two.call("POST", "/v1/rules", RULE)];
    expect(made.map(({ status }) => status)).toEqual([201, 201]);
    const by = principal.startsWith("approver:") ? api : client(other.url, two.token);
    expect(await ask(other.url, by)).toBe("submitted");
    await api.call("DELETE", `/v1/tokens/${one.tokenId}`);
    expect(await ask(other.url, by)).toBe("submitted");
    if (principal === "agent:max") await api.call("DELETE", "/v1/agents/max?force=true");
    else await api.call("DELETE", `/v1/tokens/${two.tokenId}`);
    // Its work goes on to be delegated by its name, with another token.
    if (principal === "agent:max") await api.agent("max");
    const again = principal.startsWith("approver:") ? api : await as(other.url, principal);
    expect(await ask(other.url, again)).toBe("input_required");
    const { rules } = (await api.call("GET", "/v1/rules")).body;
    expect(rules.filter(({ state }: { state: string }) => state === "active")).toEqual([]);
  },
);
