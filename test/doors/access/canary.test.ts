/** Content of callers and agents does not reach the log, and an agent's error appears only in `error`. */
import { describe, expect, test, vi } from "vitest";
import { problemSchema } from "../../../src/schema/problem.ts";
import { type Answer, as, client, request, startBroker } from "../../support/broker.ts";
import { freshDir, serveIn } from "../../support/program.ts";
import { openStream } from "../../support/sse.ts";
import { until } from "../../support/until.ts";

/** Does not look like a token, so that no rule redacts it. */
const CANARY = "kanarienvogel7f3a";
const JSON_ONLY = { accept: "application/json" };

/** The paths of a text in a JSON value, in keys and values. */
function placesOf(text: string, value: unknown, at = ""): string[] {
  if (typeof value === "string") return value.includes(text) ? [at] : [];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    const path = Array.isArray(value) ? at : at === "" ? name : `${at}.${name}`;
    return [...(name.includes(text) ? [`${path} (name)`] : []), ...placesOf(text, member, path)];
  });
}

const headersOf = ({ headers }: { headers: Headers }) => JSON.stringify([...headers]);

/** Sends the canary in every field that accepts text; returns the responses. */
async function sayEverywhere(url: string, token: string): Promise<Record<string, Answer>> {
  const api = client(url, token);
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    request(url, "POST", path, { token, body, headers });
  const get = (path: string, headers: Record<string, string> = {}) =>
    request(url, "GET", path, { token, headers });
  const work = async () => (await api.lease("scout", { worker_id: `${CANARY}-worker` })).body.leases[0];
  const said: Record<string, Answer> = {
    "a wrong token": await request(url, "GET", "/v1/agents", { token: `${CANARY}-token` }),
    "another scheme": await request(url, "GET", "/v1/agents", {
      token: null,
      headers: { authorization: `Basic ${CANARY}` },
    }),
    "a foreign origin": await get("/v1/agents", { origin: `https://${CANARY}.example` }),
    "an unknown query field": await get(`/v1/agents?${CANARY}=${CANARY}`),
    "a cursor in the query": await get(`/v1/events?after=${CANARY}`, JSON_ONLY),
    "a cursor in the header": await get("/v1/events", { ...JSON_ONLY, "last-event-id": CANARY }),
    "a filter": await get(`/v1/events?types=${CANARY}`, JSON_ONLY),
    "a path": await get(`/v1/${CANARY}`),
    "an id": await get(`/v1/delegations/${CANARY}`),
    "an agent's description": await api.agent("scout", { description: CANARY, limits: { max_attempts: 2 } }),
    "malformed JSON": await post("/v1/delegations", `{"${CANARY}`),
    "an unknown field": await post("/v1/delegations", { target: "scout", task: "x", [CANARY]: CANARY }),
    "a wrong type": await post("/v1/delegations", { target: "scout", task: [CANARY] }),
    "a media type": await post("/v1/delegations", "{}", { "content-type": `text/${CANARY}` }),
    "an unknown agent": await api.delegate(CANARY),
    "an unusable key": await api.delegate("scout", {}, { "idempotency-key": `${CANARY}\u00e4` }),
  };
  const body = { task: `${CANARY}-task`, metadata: { [CANARY]: CANARY }, context_id: CANARY };
  const headers = { "idempotency-key": `${CANARY}-key`, prefer: `wait=${CANARY}`, traceparent: CANARY };
  said["a task"] = await api.delegate("scout", body, headers);
  said["the key again"] = await api.delegate("scout", { task: CANARY }, headers);
  const first = await work();
  said["a progress"] = await api.heartbeat(first.lease_id, { progress: { message: CANARY } });
  const artifact = { artifactId: CANARY, parts: [{ text: CANARY }] };
  said["an artifact"] = await post(`/v1/leases/${first.lease_id}/artifacts`, { artifact });
  said["a release"] = await api.release(first.lease_id, { reason: CANARY });
  said["a late reply"] = await api.reply(first.lease_id, { text: CANARY });
  const failed = { state: "failed", error: { code: CANARY, message: CANARY, retryable: true } };
  said["an error that is retried"] = await api.reply((await work()).lease_id, failed);
  said["an error"] = await api.reply((await work()).lease_id, failed);
  const second = (await api.delegate("scout", { task: CANARY })).body;
  said["an A2A error"] = await post("/v1/agents/scout/replies", {
    jsonrpc: "2.0",
    id: (await work()).lease_id,
    error: { code: -32_000, message: CANARY, data: CANARY },
  });
  said["an A2A reply with nonsense for ids"] = await post("/v1/agents/scout/replies", {
    jsonrpc: "2.0",
    id: CANARY,
    result: { role: "ROLE_AGENT", parts: [{ text: CANARY }], metadata: { delegation_id: CANARY } },
  });
  const a2a = (method: string, params: unknown) =>
    post("/a2a/scout/rpc", { jsonrpc: "2.0", id: CANARY, method, params }, { "a2a-version": "1.0" });
  const hook = {
    // The URL is unreachable, so the failure is logged.
    url: `http://127.0.0.1:9/${CANARY}?${CANARY}=${CANARY}`,
    token: `${CANARY}-token`,
    authentication: { scheme: CANARY, credentials: `${CANARY}-credentials` },
  };
  const message = { messageId: CANARY, role: "ROLE_USER", parts: [{ text: CANARY }] };
  said["an A2A message with a push config"] = await a2a("SendMessage", {
    message,
    configuration: { returnImmediately: true, taskPushNotificationConfig: { id: CANARY, ...hook } },
  });
  const taskId = said["an A2A message with a push config"].body.result.task.id;
  said["a push config"] = await a2a("CreateTaskPushNotificationConfig", { taskId, id: "mine", ...hook });
  said["a push config that cannot be sent"] = await a2a("CreateTaskPushNotificationConfig", {
    taskId,
    ...hook,
    token: `${CANARY}\r\nx: y`,
  });
  said["a push config of a private address"] = await a2a("CreateTaskPushNotificationConfig", {
    taskId,
    url: `http://${CANARY}:${CANARY}@10.0.0.1/${CANARY}`,
  });
  said["an unknown push config"] = await a2a("GetTaskPushNotificationConfig", {
    taskId,
    id: `${CANARY}-none`,
  });
  said["an unknown A2A method"] = await a2a(CANARY, {});
  said["an A2A version"] = await post("/a2a/scout/rpc", {}, { "a2a-version": CANARY });
  said["an A2A path"] = await get(`/a2a/scout/rest/${CANARY}`, { "a2a-version": "1.0" });
  said["an A2A task's end"] = await a2a("CancelTask", { id: taskId, metadata: { reason: CANARY } });
  said["a cancel that is late"] = await api.cancel(second.id, { reason: CANARY });
  return said;
}

test("no content of requests reaches the log, at its finest level", async () => {
  const dir = freshDir();
  const { url, token, child, ended, stdout, stderr } = await serveIn(dir, {
    ERRAND_LOG_LEVEL: "trace",
    ERRAND_CALLBACK_ALLOW: "127.0.0.1",
  });
  const said = await sayEverywhere(url, token);
  const statuses = Object.fromEntries(Object.entries(said).map(([what, { status }]) => [what, status]));
  expect(statuses).toEqual({
    "a wrong token": 401,
    "another scheme": 401,
    "a foreign origin": 403,
    "an unknown query field": 400,
    "a cursor in the query": 400,
    "a cursor in the header": 400,
    "a filter": 400,
    "a path": 404,
    "an id": 404,
    "an agent's description": 201,
    "malformed JSON": 400,
    "an unknown field": 400,
    "a wrong type": 400,
    "a media type": 415,
    "an unknown agent": 404,
    "an unusable key": 400,
    "a task": 202,
    "the key again": 422,
    "a progress": 200,
    "an artifact": 200,
    "a release": 200,
    "a late reply": 409,
    "an error that is retried": 200,
    "an error": 200,
    "an A2A error": 200,
    "an A2A reply with nonsense for ids": 400,
    "an A2A message with a push config": 200,
    "a push config": 200,
    "a push config that cannot be sent": 200,
    "a push config of a private address": 200,
    "an unknown push config": 200,
    "an unknown A2A method": 200,
    "an A2A version": 200,
    "an A2A path": 404,
    "an A2A task's end": 200,
    "a cancel that is late": 409,
  });
  const refused = Object.entries(said).filter(([, { body }]) => body?.jsonrpc && body.error);
  expect(refused.map(([what]) => what)).toEqual([
    "a push config that cannot be sent",
    "a push config of a private address",
    "an unknown push config",
    "an unknown A2A method",
    "an A2A version",
  ]);
  await until(() => (stdout() + stderr()).includes("push failed"));
  child.kill("SIGTERM");
  await ended();
  const log = stdout() + stderr();
  expect(log).toContain("late reply");
  expect(log.toLowerCase()).not.toContain(CANARY);
  // The link that signs in is for a terminal, not for a log.
  expect(log).not.toContain("#code=");
}, 120_000);

describe("an agent's error reaches the delegator as error.message and nowhere else", () => {
  const TEXT = `${CANARY} said the agent`;
  const WAYS: Record<string, (lease: string) => [path: string, body: unknown]> = {
    "as a reply": (lease) => [
      `/v1/leases/${lease}/reply`,
      { state: "failed", error: { code: "no_seed", message: TEXT, retryable: true } },
    ],
    "as a JSON-RPC error": (lease) => [
      "/v1/agents/scout/replies",
      { jsonrpc: "2.0", id: lease, error: { code: -32_000, message: TEXT, data: { stack: TEXT } } },
    ],
  };

  test.each(Object.entries(WAYS))("%s", async (_name, way) => {
    const { url, gateway } = await startBroker();
    const api = client(url);
    await api.agent("scout", { backoff: { initial_ms: 0 }, limits: { max_attempts: 2 } });
    const alice = await as(url, "caller:alice");
    const stream = await openStream(`${url}/v1/events`, { token: alice.token });
    const { id } = (await alice.delegate("scout")).body;
    const answers: Answer[] = [];
    while ((await alice.get(id)).body.state !== "failed") {
      await gateway.sweep.tick();
      const [lease] = (await api.lease("scout")).body.leases;
      const [path, body] = way(lease.lease_id);
      answers.push(await api.call("POST", path, body));
    }
    await stream.has("DELEGATION_FAILED");
    stream.close();
    const read = await alice.get(id);
    const list = await alice.call("GET", "/v1/delegations");
    const results = await alice.call("GET", "/v1/results");
    const page = await alice.call("GET", "/v1/events?after=0", undefined, JSON_ONLY);

    expect(read.body.error.message).toBe(TEXT);
    expect(placesOf(CANARY, read.body)).toEqual(["error.message"]);
    expect(placesOf(CANARY, list.body)).toEqual(["delegations.error.message"]);
    expect(placesOf(CANARY, results.body)).toEqual(["results.error.message"]);
    const answered = answers.length;
    expect(placesOf(CANARY, page.body)).toEqual(Array(answered).fill("events.error.message"));
    expect(stream.events.flatMap(({ data }) => placesOf(CANARY, data))).toEqual(
      Array(answered).fill("error.message"),
    );
    for (const { id: cursor, event } of stream.events) expect(cursor + event).not.toContain(CANARY);
    for (const answer of [...answers, read, list, results, page])
      expect(headersOf(answer)).not.toContain(CANARY);
    // The broker itself writes what an error says about the delegation's state.
    const refused = await alice.cancel(id);
    expect(refused.body.code).toBe("already_finished");
    expect(JSON.stringify(refused.body)).not.toContain(CANARY);
  });
});

describe("an exception inside the broker", () => {
  const INSIDE = `${CANARY} at /somewhere/inside.ts:1`;
  const THROWN: Record<string, unknown> = {
    "an Error": new Error(INSIDE, { cause: new Error(INSIDE) }),
    "an answer of Redis": Object.assign(new Error(`ERR ${INSIDE}`), {
      command: { name: "x", args: [INSIDE] },
    }),
  };

  test.each(Object.entries(THROWN))(
    "%s: `internal` with the request id, logged, shown without detail",
    async (_name, thrown) => {
      const { url, gateway, log } = await startBroker();
      const api = client(url);
      await api.agent("scout");
      vi.spyOn(gateway.broker.writer, "move").mockRejectedValueOnce(thrown);
      const answer = await api.delegate("scout");
      expectInternal(answer);
      const line = log.find((one) => one.includes(answer.body.request_id));
      expect(line).toContain(INSIDE);
    },
  );

  test("what looks like a credential is redacted anywhere in a log line", async () => {
    const { url, gateway, log } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const alice = await as(url, "caller:alice");
    const kinds = ["operator", "session", "code"].map((kind) => `errand_${kind}_${alice.token.slice(7)}`);
    const secrets = [alice.token, ...kinds, "whsec_C2FuYXJpZW52b2dlbA==", "Bearer opaque-but-secret"];
    const thrown = Object.assign(new Error(`the call with ${secrets.join(" and ")} failed`), {
      command: { name: "hset", args: secrets },
    });
    vi.spyOn(gateway.broker.writer, "move").mockRejectedValueOnce(thrown);
    const answer = await api.delegate("scout");
    const line = log.find((one) => one.includes(answer.body.request_id)) ?? "";
    const shown = `${"[redacted] and ".repeat(5)}Bearer [redacted]`;
    expect(line).toContain(`the call with ${shown} failed`);
    for (const secret of [alice.token.slice(7), "whsec_C2", "opaque-but-secret"])
      expect(log.join("")).not.toContain(secret);
  });

  test("an outcome that no verb expects is shown without detail, too", async () => {
    const { url, gateway, log } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const { id } = (await api.delegate("scout")).body;
    const { outcome } = await gateway.broker.writer.move({ move: "due", id });
    expect(outcome.kind).toBe("not_due");
    vi.spyOn(gateway.broker.writer, "move").mockResolvedValueOnce({ outcome, record: null, unseen: [] });
    const answer = await api.cancel(id);
    expectInternal(answer);
    expect(log.find((one) => one.includes(answer.body.request_id))).toContain("not_due");
  });

  test("in the middle of a stream it ends the stream without detail", async () => {
    const { url, gateway, log } = await startBroker();
    const alice = await as(url, "caller:alice");
    vi.spyOn(gateway.broker.bulk, "evalsha").mockRejectedValueOnce(new Error(INSIDE));
    const response = await fetch(`${url}/v1/events?after=0`, {
      headers: { authorization: `Bearer ${alice.token}`, accept: "text/event-stream" },
    });
    expect(await response.text()).toBe("");
    const id = response.headers.get("x-request-id") ?? "none";
    await until(() => log.some((line) => line.includes(id) && line.includes(CANARY)));
  });
});

function expectInternal(answer: Answer): void {
  const problem = problemSchema.strict().parse(answer.body);
  expect(problem).toEqual({
    type: "urn:errand:error:internal",
    title: "Internal error",
    status: 500,
    detail: "The broker failed unexpectedly.",
    code: "internal",
    category: "INTERNAL",
    retryable: false,
    recovery: problem.recovery,
    request_id: answer.headers.get("x-request-id"),
    broker_id: answer.headers.get("errand-broker"),
  });
  expect(JSON.stringify(problem) + headersOf(answer)).not.toContain(CANARY);
}
