/** Rules in a backup, and in a move to more shards: they answer as before, and count on. */
import { dirname, join } from "node:path";
import { expect, test, vi } from "vitest";
import { isOwnKey } from "../../src/redis/keys.ts";
import { client, request, startBroker } from "../support/broker.ts";
import { startOwnRedis } from "../support/own-redis.ts";
import { freshDir } from "../support/program.ts";
import { cli } from "./cli.ts";

vi.setConfig({ testTimeout: 60_000 });

const AGENTS = ["scout", "coder", "janitor", "prober", "writer", "tester"];
const QUESTION = { text: "Shall I?", action: { name: "write" } };

async function setup(own: Awaited<ReturnType<typeof startOwnRedis>>, tokens: string[], shards = 1) {
  const broker = await startBroker({ redis: own.target, shards });
  const api = client(broker.url);
  const [ann, alice] = tokens.map((token) => client(broker.url, token));
  if (!ann || !alice) throw new Error("two tokens are needed");
  const asks = async (agent: string) => {
    const { id } = (await alice.delegate(agent)).body;
    const [lease] = (await api.lease(agent)).body.leases;
    await api.interrupt(lease.lease_id, QUESTION);
    const { state, history } = (await api.get(id)).body;
    await api.cancel(id);
    return state === "submitted" ? history[1].metadata.rule : state;
  };
  const rules = async () => (await api.call("GET", "/v1/rules")).body.rules;
  return { ...broker, own, api, ann, alice, asks, rules, dataDir: dirname(own.target.socket) };
}

test.each([
  ["restored", 1],
  ["moved to more shards", 5],
])("rules that are %s answer, count and are revoked as before", async (_, shards) => {
  const own = await startOwnRedis("everysec");
  const first = await startBroker({ redis: own.target, shards: 1 });
  const tokens: { token: string; id: string }[] = [];
  for (const principal of ["approver:ann", "caller:alice"])
    tokens.push((await request(first.url, "POST", "/v1/tokens", { body: { principal } })).body);
  await first.gateway.close({ idleGrace: false });
  const secrets = tokens.map(({ token }) => token);
  const before = await setup(own, secrets);
  const made: string[] = [];
  for (const [n, agent] of AGENTS.entries()) {
    await before.api.agent(agent);
    const creator = n % 2 === 0 ? before.ann : before.alice;
    const rule = { agent, action: "write", decision: "approve", max_uses: 2 };
    made.push((await creator.call("POST", "/v1/rules", rule)).body.id);
    expect(await before.asks(agent)).toBe(made[n]);
  }
  const shown = await before.rules();
  expect((await own.redis.keys("*")).filter((key) => !isOwnKey(key))).toEqual([]);
  const dataDir = join(freshDir(), "later");
  if (shards === 1) {
    const file = join(freshDir(), "errand.backup");
    expect(await cli(before.dataDir, "backup", file)).toMatchObject({ code: 0 });
    await before.gateway.close({ idleGrace: false });
    expect(await cli(dataDir, "restore", file, "--data-dir", dataDir)).toMatchObject({ code: 0 });
  } else {
    await before.gateway.close({ idleGrace: false });
    await own.embedded.stop();
    const moved = ["migrate", "--to-data-dir", dataDir, "--shards", String(shards)];
    const { code, stderr } = await cli(before.dataDir, ...moved);
    expect([code, stderr]).toEqual([0, expect.anything()]);
  }
  const after = await setup(await startOwnRedis("everysec", dataDir), secrets, shards);
  expect(await after.rules()).toEqual(shown);
  for (const [n, agent] of AGENTS.slice(0, 4).entries()) {
    expect(await after.asks(agent)).toBe(made[n]);
    expect(await after.asks(agent)).toBe("input_required");
  }
  const states = async () => (await after.rules()).map(({ state }: { state: string }) => state);
  expect(await states()).toEqual([...Array(4).fill("used_up"), "active", "active"]);
  // By the lists of tokens, and by the id.
  await after.api.call("DELETE", `/v1/tokens/${tokens[0]?.id}`);
  expect((await after.alice.call("DELETE", `/v1/rules/${made[5]}`)).status).toBe(204);
  for (const agent of AGENTS.slice(4)) expect(await after.asks(agent)).toBe("input_required");
  for (const agent of AGENTS) await after.api.call("DELETE", `/v1/agents/${agent}?force=true`);
  expect(await after.rules()).toEqual([]);
  expect((await after.own.redis.keys("*")).filter((key) => key.includes("rules"))).toEqual([]);
});
