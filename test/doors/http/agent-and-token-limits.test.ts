/** The limits on the number of agents and tokens. */
import { expect, test } from "vitest";
import { client, startBroker } from "../../support/broker.ts";

test("agents are bounded in number; those that exist can be changed and deleted", async () => {
  const { url, redis } = await startBroker();
  const admin = client(url);
  await admin.agent("scout");
  await redis.sadd("{errand:0}:agents", ...Array.from({ length: 9_999 }, (_, n) => `a${n}`));
  const refused = await admin.agent("one-more");
  expect(refused.body).toMatchObject({
    status: 409,
    code: "limit_reached",
    details: { limit: "agents", maximum: 10_000 },
  });
  expect((await admin.call("PATCH", "/v1/agents/scout", { version: "2" })).status).toBe(200);
  expect((await admin.call("DELETE", "/v1/agents/scout")).status).toBe(204);
  expect((await admin.agent("one-more")).status).toBe(201);
});

test("tokens are bounded in number; expired ones make room, and revoking does", async () => {
  const { url, redis } = await startBroker();
  const admin = client(url);
  const create = (more = {}) => admin.call("POST", "/v1/tokens", { principal: "caller:ci", ...more });
  const { body } = await create();
  const filler = Object.fromEntries(Array.from({ length: 9_998 }, (_, n) => [`t${n}`, "{}"]));
  await redis.hset("{errand}:tokens", filler);
  expect((await create()).status).toBe(201);
  expect((await create()).body).toMatchObject({
    status: 409,
    code: "limit_reached",
    details: { limit: "tokens", maximum: 10_000 },
  });
  await redis.zadd("{errand}:tokens:expiring", 1, "t0");
  expect((await create()).status).toBe(201);
  expect((await create()).status).toBe(409);
  expect((await admin.call("DELETE", `/v1/tokens/${body.id}`)).status).toBe(204);
  expect((await create()).status).toBe(201);
});
