/** A Redis outage during a call, and what the log contains of a call. */
import { expect, test } from "vitest";
import { as, client, OPERATOR, startBroker } from "../../support/broker.ts";
import { callModern, postMcp, toolOutput } from "../../support/mcp.ts";
import { startOwnRedis } from "../../support/own-redis.ts";

test("a retry with the error's idempotency key resolves an unknown outcome", async () => {
  const own = await startOwnRedis("everysec");
  const { url } = await startBroker({ redis: own.target });
  const api = client(url);
  await api.agent("scout");
  const call = async (more: Record<string, unknown> = {}) =>
    toolOutput(
      (
        await callModern(url, OPERATOR, "delegate_task_async", {
          agent: "scout",
          task: "once",
          metadata: { n: 1 },
          ...more,
        })
      ).body.result,
    );
  own.signal("SIGSTOP");
  const lost = await call().finally(() => own.signal("SIGCONT"));
  expect(lost.isError).toBe(true);
  const { error } = lost.data;
  expect(error).toMatchObject({
    category: "TRANSPORT",
    code: "redis_unavailable",
    retryable: true,
    details: { outcome: "unknown", idempotency_key: expect.stringMatching(/^mcp:/) },
    recovery: expect.stringContaining("idempotency_key"),
  });
  expect(lost.text).toContain(error.details.idempotency_key);
  const { idempotency_key } = error.details;
  const first = await call({ idempotency_key });
  const second = await call({ idempotency_key });
  expect(second.data).toMatchObject({ delegation_id: first.data.delegation_id, replayed: true });
  expect((await api.call("GET", "/v1/delegations")).body.delegations).toHaveLength(1);
}, 120_000);

test("neither tokens nor messages are logged", async () => {
  const { url, log } = await startBroker();
  const alice = await as(url, "caller:alice");
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const secret = "canary-4711";
  const calls: [string, Record<string, unknown>][] = [
    ["delegate_task_async", { agent: "scout", task: secret }],
    ["delegate_task_async", { agent: secret, task: 5 }],
    ["check_task_status", { delegation_id: secret }],
    [secret, { text: secret }],
  ];
  for (const [name, args] of calls) {
    await callModern(url, alice.token, name, args, { headers: { "x-secret": secret } });
  }
  for (const body of [`{"${secret}`, { [secret]: 1 }, { jsonrpc: "2.0", id: 1, method: secret }]) {
    await postMcp(url, alice.token, body);
  }
  // The SDK's error texts quote the client.
  const wrong = { headers: { "mcp-name": secret, "mcp-method": secret } };
  expect((await callModern(url, alice.token, "broker_health", {}, wrong)).body.error.message).toContain(
    secret,
  );
  await postMcp(url, secret, { jsonrpc: "2.0", id: 1, method: "ping" });
  const written = log.join("\n");
  for (const one of [secret, alice.token, OPERATOR]) expect(written).not.toContain(one);
});
