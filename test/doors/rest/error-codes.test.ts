import { request as rawRequest } from "node:http";
import { expect, test } from "vitest";
import { storageUnavailable } from "../../../src/engine/files/file-errors.ts";
import { ERRORS, type ErrorCode, isErrorCode, NAMED_DETAILS } from "../../../src/schema/errors.ts";
import { LIMITS } from "../../../src/schema/limits.ts";
import { problemSchema } from "../../../src/schema/problem.ts";
import { type Answer, as, client, OPERATOR, request, startBroker } from "../../support/broker.ts";
import { keysIn } from "../../support/dump.ts";
import { fileOptions } from "../../support/files.ts";
import { startOwnRedis } from "../../support/own-redis.ts";
import { setFields } from "../../support/record.ts";

const NOBODY = "0".repeat(26);

async function setup(options: Parameters<typeof startBroker>[0] = {}) {
  const broker = await startBroker(options);
  const api = client(broker.url);
  await api.agent("scout");
  const leased = async () => {
    const { id } = (await api.delegate("scout")).body;
    const { leases } = (await api.lease("scout")).body;
    return { id: String(id), lease: String(leases[0].lease_id) };
  };
  const replied = (body: unknown) => api.call("POST", "/v1/agents/scout/replies", body);
  return { ...broker, api, leased, replied };
}

/** A body as bytes, which need not be JSON. */
async function sendBytes(
  url: string,
  body: Uint8Array<ArrayBuffer>,
  type: string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(`${url}/v1/delegations`, {
    method: "POST",
    headers: { authorization: `Bearer ${OPERATOR}`, "content-type": type, ...headers },
    body,
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

/** A request whose body ends only after `meanwhile`. */
async function sendInTwo(url: string, body: string, meanwhile: () => void): Promise<Answer> {
  const outgoing = rawRequest(`${url}/v1/delegations`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${OPERATOR}`,
      "content-type": "application/json",
      expect: "100-continue",
    },
  });
  // The gateway asks for the body, so it has received the request.
  await new Promise<void>((resolve) => outgoing.once("continue", resolve).flushHeaders());
  outgoing.write(body.slice(0, 1));
  meanwhile();
  return new Promise((resolve, reject) => {
    outgoing.once("error", reject);
    outgoing.once("response", async (incoming) => {
      let text = "";
      for await (const chunk of incoming) text += chunk;
      const pairs = Object.entries(incoming.headers).map(([name, value]): [string, string] => [
        name,
        String(value),
      ]);
      resolve({ status: incoming.statusCode ?? 0, headers: new Headers(pairs), body: JSON.parse(text) });
    });
    outgoing.end(body.slice(1));
  });
}

/** For each code, a request that gets it. */
const REACHED: Partial<Record<ErrorCode, () => Promise<Answer>>> = {
  async invalid_request() {
    const { api } = await setup();
    return api.delegate("scout", { priority: 10 });
  },
  async invalid_json() {
    const { api } = await setup();
    return api.call("POST", "/v1/delegations", '{"target":');
  },
  async inexact_number() {
    const { api } = await setup();
    return api.call(
      "POST",
      "/v1/delegations",
      '{"target":"scout","task":"x","metadata":{"id":9007199254740993}}',
    );
  },
  async invalid_utf8() {
    const { url } = await setup();
    return sendBytes(url, new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d]), "application/json");
  },
  async unauthenticated() {
    const { url } = await setup();
    return request(url, "GET", "/v1/agents", { token: null });
  },
  async forbidden() {
    const { url } = await setup();
    return (await as(url, "caller:alice")).lease("scout");
  },
  async not_accepted() {
    const { api } = await setup();
    await api.agent("scout", { accepts_from: [] });
    return api.delegate("scout");
  },
  async priority_too_high() {
    const { api, url } = await setup();
    const token = (await api.call("POST", "/v1/tokens", { principal: "caller:carol", max_priority: 2 })).body
      .token;
    return client(url, token).delegate("scout", { priority: 3 });
  },
  async approval_required() {
    const { api } = await setup();
    await api.agent("scout", { approvals: "person" });
    return api.delegate("scout", { auto_approve: true });
  },
  async result_invalid() {
    const { api } = await setup();
    await api.delegate("scout", { result_schema: { type: "integer" } });
    return api.reply((await api.lease("scout")).body.leases[0].lease_id);
  },
  async agent_unknown() {
    const { api } = await setup();
    return api.delegate("nobody");
  },
  async delegation_not_found() {
    const { api } = await setup();
    return api.get(`dlg_0_${NOBODY}`);
  },
  async lease_unknown() {
    const { api } = await setup();
    return api.heartbeat(`lse_0_${NOBODY}_1`);
  },
  async answer_unknown() {
    const { api } = await setup();
    await api.delegate("scout");
    const { lease_id } = (await api.lease("scout")).body.leases[0];
    const use = { interrupt_id: "int_none", request_id: "r", use_key: "k" };
    return api.call("POST", `/v1/leases/${lease_id}/use`, use);
  },
  async reply_unknown() {
    const { replied } = await setup();
    return replied({ messageId: "m", role: "ROLE_AGENT", parts: [] });
  },
  async not_found() {
    const { api } = await setup();
    return api.call("GET", "/v1/nothing");
  },
  async method_not_allowed() {
    const { api } = await setup();
    return api.call("PUT", "/v1/delegations", {});
  },
  async lease_lost() {
    const { api, leased } = await setup();
    const { lease } = await leased();
    await api.release(lease);
    return api.heartbeat(lease);
  },
  async already_finished() {
    const { api, leased } = await setup();
    const { id, lease } = await leased();
    await api.reply(lease);
    return api.cancel(id);
  },
  async agent_busy() {
    const { api } = await setup();
    await api.delegate("scout");
    return api.call("DELETE", "/v1/agents/scout");
  },
  async precondition_failed() {
    const { api } = await setup();
    return api.call("PUT", "/v1/agents/scout", {}, { "if-match": '"old"' });
  },
  async payload_too_large() {
    const { api } = await setup({ maxBodyBytes: 4_096 });
    return api.delegate("scout", { task: "x".repeat(5_000) });
  },
  async unsupported_media_type() {
    const { url } = await setup();
    return sendBytes(url, new Uint8Array([0x7b, 0x7d]), "text/plain");
  },
  async unsupported_encoding() {
    const { url } = await setup();
    return sendBytes(url, new Uint8Array([0x1f, 0x8b]), "application/json", { "content-encoding": "gzip" });
  },
  async idempotency_conflict() {
    const { api } = await setup();
    await api.delegate("scout", { task: "one" }, { "idempotency-key": "k" });
    return api.delegate("scout", { task: "two" }, { "idempotency-key": "k" });
  },
  async usage_shrinks() {
    const { api, leased } = await setup();
    const { lease } = await leased();
    await api.heartbeat(lease, { usage: { input_tokens: 2 } });
    return api.heartbeat(lease, { usage: { input_tokens: 1 } });
  },
  async usage_currency() {
    const { api, leased } = await setup();
    const { lease } = await leased();
    await api.heartbeat(lease, { usage: { cost: 1, currency: "USD" } });
    return api.heartbeat(lease, { usage: { cost: 2, currency: "EUR" } });
  },
  async unknown_task_state() {
    const { leased, replied } = await setup();
    const { lease } = await leased();
    return replied({ jsonrpc: "2.0", id: lease, result: { task: { id: "t", status: { state: "DONE" } } } });
  },
  async queue_full() {
    const { api } = await setup();
    await api.agent("scout", { limits: { max_waiting: 1 } });
    await api.delegate("scout");
    return api.delegate("scout");
  },
  async interrupt_not_open() {
    const { api, leased } = await setup();
    return api.answer((await leased()).id, "int_none", { text: "yes" });
  },
  async wrong_state() {
    const { api, leased } = await setup();
    return api.redrive((await leased()).id);
  },
  async delegation_loop() {
    const { url } = await setup();
    return (await as(url, "agent:scout")).delegate("scout");
  },
  async rate_limited() {
    const { api, leased, redis } = await setup();
    const { id, lease } = await leased();
    const full = { pace_at: Date.now() + 60_000, pace_count: LIMITS.progress_per_second.value };
    await setFields(redis, `{errand:0}:d:${id}`, full);
    return api.heartbeat(lease, { progress: { done: 1 } });
  },
  async not_a_child() {
    const { api, leased } = await setup();
    const { id, lease } = await leased();
    return api.await(lease, [id]);
  },
  async limit_reached() {
    const { api, leased, redis } = await setup();
    const { id } = await leased();
    await setFields(redis, `{errand:0}:d:${id}`, { version: LIMITS.delegation_events.value });
    return api.message(id, "more");
  },
  async budget_exhausted() {
    const { api, leased } = await setup();
    await api.agent("scout", { budgets: { day: { tokens: 1 } } });
    const { lease } = await leased();
    await api.heartbeat(lease, { usage: { input_tokens: 1 } });
    return api.delegate("scout");
  },
  async quota_exceeded() {
    const { url } = await setup({ quotas: { streams: 0 } });
    return (await as(url, "caller:alice")).call("GET", "/v1/events", undefined, {
      accept: "text/event-stream",
    });
  },
  async internal() {
    const { api, redis } = await setup();
    const { id } = (await api.delegate("scout")).body;
    const [key = ""] = await keysIn(redis, `*${id}`);
    await setFields(redis, key, { state: "no state of ours" });
    return api.get(id);
  },
  async redis_unavailable() {
    const own = await startOwnRedis();
    const { api } = await setup({ redis: own.target });
    own.signal("SIGSTOP");
    const answer = await api.delegate("scout");
    own.signal("SIGCONT");
    return answer;
  },
  async overloaded() {
    const own = await startOwnRedis();
    const { api } = await setup({ redis: own.target });
    await own.redis.config("SET", "maxmemory", "1");
    return api.delegate("scout");
  },
  async file_not_found() {
    const { api } = await setup({ files: await fileOptions() });
    return api.call("GET", `/v1/files/fil_${"0".repeat(16)}_${"0".repeat(64)}`);
  },
  async upload_not_found() {
    const { api } = await setup({ files: await fileOptions() });
    return api.call("GET", `/v1/uploads/upl_${NOBODY}`);
  },
  async upload_offset() {
    const { api } = await setup({ files: await fileOptions() });
    const { id } = (await api.call("POST", "/v1/uploads", undefined, { "upload-length": "9" })).body;
    return api.call("PATCH", `/v1/uploads/${id}`, 1, { "upload-offset": "5" });
  },
  async hash_mismatch() {
    const { api } = await setup({ files: await fileOptions() });
    return api.call("POST", `/v1/files?sha256=${"0".repeat(64)}`, "1");
  },
  async range_not_satisfiable() {
    const { api } = await setup({ files: await fileOptions() });
    const { id } = (await api.call("POST", "/v1/files", "1")).body;
    return api.call("GET", `/v1/files/${id}`, undefined, { range: "bytes=9-" });
  },
  async files_off() {
    const { api } = await setup();
    return api.call("POST", "/v1/files", "1");
  },
  async storage_full() {
    const files = await fileOptions();
    files.store.freeBytes = async () => 0;
    const { api } = await setup({ files });
    return api.call("POST", "/v1/files", "1");
  },
  async storage_unavailable() {
    const files = await fileOptions();
    files.store.freeBytes = () => Promise.reject(storageUnavailable(new Error("it fails")));
    const { api } = await setup({ files });
    return api.call("POST", "/v1/files", "1");
  },
  async shutting_down() {
    const { url, gateway } = await setup();
    return sendInTwo(url, '{"target":"scout","task":"x"}', () => void gateway.close());
  },
};

const CODES = Object.keys(ERRORS).filter(isErrorCode);

test.each(Object.entries(REACHED))("%s", async (code, reach) => {
  if (!isErrorCode(code)) throw new Error(`${code} is not in the table`);
  const { status, category, retryable, recovery, title } = ERRORS[code];
  const answer = await reach();
  expect(problemSchema.parse(answer.body)).toMatchObject({
    type: `urn:errand:error:${code}`,
    code,
    status,
    title,
    category,
    retryable,
    recovery,
  });
  const named = Object.entries(NAMED_DETAILS).find(([one]) => one === code)?.[1];
  if (named !== undefined) expect(answer.body.details).toHaveProperty(named);
  if (recovery.includes("Allow header")) expect(answer.headers.get("allow")).toMatch(/[A-Z]/);
  expect(answer.status).toBe(status);
  expect(answer.headers.get("content-type")).toBe("application/problem+json");
  expect(answer.headers.get("x-request-id")).toBe(answer.body.request_id);
  expect(answer.headers.has("retry-after")).toBe(retryable);
  expect(answer.headers.has("www-authenticate")).toBe(status === 401);
});

test("every code of a response is reached here", () => {
  const wanted = CODES.filter((code) => ERRORS[code].status !== null);
  expect(Object.keys(REACHED).sort()).toEqual(wanted.sort());
});
