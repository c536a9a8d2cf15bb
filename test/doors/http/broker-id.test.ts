/** Every response names the broker, so that a client can tell its answers from those of anything in between. */
import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { keys } from "../../../src/redis/keys.ts";
import { OPERATOR, request, startBroker } from "../../support/broker.ts";

const ORIGIN = "https://ops.example";
const AUTH = { authorization: `Bearer ${OPERATOR}` };
const json = { ...AUTH, "content-type": "application/json" };
const rpc = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "GetTask", params: { id: "none" } });

const RESPONSES: readonly [string, string, RequestInit][] = [
  ["a result", "/v1/agents", { headers: AUTH }],
  ["HEAD", "/v1/agents", { headers: AUTH, method: "HEAD" }],
  ["health", "/healthz", {}],
  ["readiness", "/readyz", {}],
  ["metrics", "/metrics", { headers: AUTH }],
  ["a page", "/docs", {}],
  ["the console", "/console/", {}],
  ["a stream", "/v1/events", { headers: { ...AUTH, accept: "text/event-stream" } }],
  ["no token", "/v1/agents", {}],
  ["a wrong token", "/v1/agents", { headers: { authorization: "Bearer wrong-token-of-nobody" } }],
  ["an unknown path", "/v1/none", { headers: AUTH }],
  ["an unknown agent", "/v1/agents/none", { headers: AUTH }],
  ["a bad body", "/v1/delegations", { headers: json, method: "POST", body: "{" }],
  ["a foreign origin", "/v1/agents", { headers: { ...AUTH, origin: "https://evil.example" } }],
  ["an A2A error", "/a2a/none/", { headers: json, method: "POST", body: rpc }],
  ["an MCP error", "/mcp", { headers: json, method: "POST", body: "{}" }],
  ["an AG-UI error", "/ag-ui/none", { headers: json, method: "POST", body: "{}" }],
];

test("the id is in every response, and a member of every problem document", async () => {
  const { gateway, url } = await startBroker({ allowedOrigins: [ORIGIN] });
  const { id } = gateway.broker;
  expect(id).toMatch(/^brk_[0-9a-z]{26}$/);
  for (const [name, path, init] of RESPONSES) {
    const response = await fetch(url + path, { redirect: "manual", ...init });
    expect([name, response.headers.get("errand-broker")]).toEqual([name, id]);
    if (response.headers.get("content-type") !== "application/problem+json") await response.body?.cancel();
    else expect([name, await response.json()]).toEqual([name, expect.objectContaining({ broker_id: id })]);
  }
  expect((await request(url, "GET", "/v1/status")).body).toMatchObject({ broker_id: id });
  const read = await request(url, "GET", "/v1/agents", { headers: { origin: ORIGIN } });
  expect(read.headers.get("access-control-expose-headers")).toMatch(/(^|, )Errand-Broker(,|$)/);
  const batch = { delegations: [{ target: "none", task: "x" }] };
  const { body } = await request(url, "POST", "/v1/delegations/batch", { body: batch });
  expect(body.results).toEqual([{ status: 404, error: expect.objectContaining({ broker_id: id }) }]);
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  let raw = "";
  socket.on("data", (chunk) => {
    raw += chunk;
  });
  socket.write("GET / HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n");
  await once(socket, "close");
  expect(raw.toLowerCase()).toContain(`errand-broker: ${id}`);
  expect(raw).toContain(`"broker_id":"${id}"`);
});

test("gateways that start at the same time on an empty Redis agree on one id; an empty Redis has another", async () => {
  const first = await startBroker();
  await first.redis.del(keys.layout);
  const started = await Promise.all([first.another(), first.another(), first.another()]);
  const ids = started.map(({ gateway }) => gateway.broker.id);
  expect(new Set(ids).size).toBe(1);
  expect(ids[0]).not.toBe(first.gateway.broker.id);
  expect((await first.another()).gateway.broker.id).toBe(ids[0]);
});
