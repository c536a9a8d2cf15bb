import { once } from "node:events";
import { get } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { problemSchema } from "../../../src/schema/problem.ts";
import { client, OPERATOR, request, startBroker } from "../../support/broker.ts";
import { dump } from "../../support/dump.ts";
import { until } from "../../support/until.ts";

async function setup() {
  const broker = await startBroker({ maxBodyBytes: 4_096 });
  const api = client(broker.url);
  await api.agent("scout");
  return { ...broker, api };
}

const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
const JSON_TYPE = { "content-type": "application/json" };

const BAD: [
  string,
  { body?: string | Uint8Array<ArrayBuffer>; headers?: Record<string, string> },
  number,
  string,
][] = [
  ["malformed JSON", { body: '{"target":' }, 400, "invalid_json"],
  ["not an object", { body: "[1]" }, 400, "invalid_request"],
  ["invalid UTF-8", { body: new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d]) }, 400, "invalid_utf8"],
  ["a prototype", { body: '{"__proto__":{"x":1},"target":"scout","task":"x"}' }, 400, "invalid_json"],
  [
    "deep nesting",
    { body: `{"target":"scout","task":"x","metadata":${nested(65)}}` },
    400,
    "invalid_request",
  ],
  ["an unknown field", { body: '{"target":"scout","task":"x","prio":1}' }, 400, "invalid_request"],
  ["a wrong type", { body: '{"target":"scout","task":1}' }, 400, "invalid_request"],
  ["neither task nor message", { body: '{"target":"scout"}' }, 400, "invalid_request"],
  ["a bad agent name", { body: '{"target":"No Such!","task":"x"}' }, 400, "invalid_request"],
  [
    "a line break in a context",
    { body: '{"target":"scout","task":"x","context_id":"a\\r\\nb"}' },
    400,
    "invalid_request",
  ],
  [
    "a part with two contents",
    { body: '{"target":"scout","message":{"parts":[{"text":"a","url":"b"}]}}' },
    400,
    "invalid_request",
  ],
  [
    "a past deadline",
    { body: '{"target":"scout","task":"x","deadline":"2001-01-01T00:00:00Z"}' },
    400,
    "invalid_request",
  ],
  ["an unknown agent", { body: '{"target":"nobody","task":"x"}' }, 404, "agent_unknown"],
  [
    "a body that is too large",
    { body: `{"target":"scout","task":"${"x".repeat(5_000)}"}` },
    413,
    "payload_too_large",
  ],
  [
    "a media type other than JSON",
    { body: "a=b", headers: { "content-type": "text/plain" } },
    415,
    "unsupported_media_type",
  ],
  ["a foreign origin", { body: "{}", headers: { origin: "https://evil.example" } }, 403, "forbidden"],
];

test("broken JSON is refused with its position, and a forbidden member by its name", async () => {
  const { api } = await setup();
  const refused = async (body: string) => {
    const answer = await api.call("POST", "/v1/delegations", body);
    expect([answer.status, answer.body.code]).toEqual([400, "invalid_json"]);
    return answer.body.detail;
  };
  expect(await refused('{"target": "scout",}')).toBe("The body is not well-formed JSON: see character 20.");
  expect(await refused('{"target": scout}')).toBe(
    "The body is not well-formed JSON: unexpected 's' outside a string.",
  );
  expect(await refused('{"target":')).toBe("The body is not well-formed JSON: it ends too early.");
  expect(await refused('{"__proto__": 1}')).toBe("The body has a member named __proto__ or constructor.");
});

test("an unknown path names the addresses that exist", async () => {
  const { api, url } = await setup();
  const recoveryOf = async (path: string) => (await api.call("GET", path)).body.recovery;
  const general = await recoveryOf("/v1/nothing");
  for (const address of ["/docs", "/openapi.json"]) {
    expect(general).toContain(address);
    expect((await fetch(`${url}${address}`)).status).toBe(200);
  }
  for (const path of ["/a2a/scout", "/a2a/scout/", "/a2a/scout/v1/message:send"]) {
    expect(await recoveryOf(path)).toBe(
      "Read the agent card at /a2a/scout/.well-known/agent-card.json. JSON-RPC is POST /a2a/scout/rpc, HTTP+JSON is below /a2a/scout/rest/.",
    );
  }
});

describe("a bad request is refused with a stable code and leaves no data", () => {
  test.each(BAD)("%s", async (_name, { body, headers = {} }, status, code) => {
    const { url, redis } = await setup();
    const before = await dump(redis);
    const response = await fetch(`${url}/v1/delegations`, {
      method: "POST",
      headers: { authorization: `Bearer ${OPERATOR}`, ...JSON_TYPE, ...headers },
      ...(body !== undefined && { body }),
    });
    expect(response.headers.get("content-type")).toBe("application/problem+json");
    const problem = problemSchema.parse(await response.json());
    expect(problem).toMatchObject({ status, code });
    expect(response.status).toBe(status);
    expect(problem.recovery.length).toBeGreaterThan(10);
    expect(problem.request_id).toBe(response.headers.get("x-request-id"));
    expect(await dump(redis)).toEqual(before);
  });

  test("all issues of a body are reported at once, each with its path", async () => {
    const { api } = await setup();
    const { body } = await api.call("POST", "/v1/delegations", {
      target: "scout",
      task: "x",
      prio: 1,
      priority: 10,
    });
    const paths = body.details.issues.map((issue: { path: string }) => issue.path).sort();
    expect(paths).toEqual(["prio", "priority"]);
  });

  test("an endless chunked body is refused at the limit", async () => {
    const { url } = await setup();
    let sent = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 1_024;
        controller.enqueue(new Uint8Array(1_024).fill(0x20));
      },
    });
    const init = {
      method: "POST",
      headers: { authorization: `Bearer ${OPERATOR}`, ...JSON_TYPE },
      body: endless,
      duplex: "half",
    };
    const answer = await fetch(`${url}/v1/delegations`, init).catch(() => null);
    if (answer) expect(answer.status).toBe(413);
    expect(sent).toBeLessThan(10_000_000);
  });
});

test("unknown paths, ids and query fields have their own codes", async () => {
  const { api } = await setup();
  const unknown = `dlg_0_${"0".repeat(26)}`;
  expect((await api.call("GET", "/v1/nothing")).body.code).toBe("not_found");
  expect((await api.get(unknown)).body.code).toBe("delegation_not_found");
  // An id of a wrong form is one that does not exist; a long one is not repeated as a whole.
  expect((await api.get("nonsense")).body).toMatchObject({
    code: "delegation_not_found",
    detail: "There is no delegation 'nonsense'.",
  });
  expect((await api.get("x".repeat(5_000))).body.detail.length).toBeLessThan(200);
  expect((await api.heartbeat("nonsense")).body.code).toBe("lease_unknown");
  expect((await api.get(`dlg_5_${"0".repeat(26)}`)).body.code).toBe("delegation_not_found");
  expect((await api.heartbeat(`lse_0_${"0".repeat(26)}_1`)).body.code).toBe("lease_unknown");
  expect((await api.get(unknown, "?wait=1")).body).toMatchObject({
    code: "invalid_request",
    details: { issues: [{ path: "wait", reason: "unknown field in the query; did you mean wait_seconds?" }] },
  });
  expect((await api.call("GET", "/v1/agents/nobody")).body.code).toBe("agent_unknown");
  expect((await api.lease("nobody")).body.code).toBe("agent_unknown");
});

test("strings that could forge a frame or a header are stored and returned as data", async () => {
  const { api, url } = await setup();
  const task = "a\r\nevent: FORGED\n\ndata: {}\u0000\u2028 b";
  const { id } = (await api.delegate("scout", { task })).body;
  expect((await api.get(id)).body.message.parts).toEqual([{ text: task }]);
  const response = await request(url, "GET", `/v1/delegations/${id}/events?after=0`, {
    headers: { accept: "application/json" },
  });
  expect(response.body.events).toHaveLength(1);
  expect(response.body.events[0].task_preview).toBe(task);
});

test("a host name that was rebound to this machine is refused", async () => {
  const { url } = await setup();
  const { hostname, port } = new URL(url);
  const answer = await new Promise<string>((resolve, reject) => {
    get({ host: hostname, port, path: "/docs", headers: { host: "evil.example" } }, async (response) =>
      resolve(await text(response)),
    ).on("error", reject);
  });
  const { status, code, recovery } = JSON.parse(answer);
  expect([status, code]).toEqual([403, "forbidden"]);
  for (const setting of ["ERRAND_PUBLIC_URL", "ERRAND_ALLOWED_ORIGINS"]) expect(recovery).toContain(setting);
});

test.each([
  ["not_before", "9999-12-31T23:59:59.999Z"],
  ["deadline", "9999-12-31T23:59:59.999Z"],
  ["deadline", "9999-12-31T23:59:59.999-23:59"],
  ["not_before", "9000-01-01T00:00:00.000Z"],
])("an instant that is too late to add to is refused: %s %s", async (field, instant) => {
  const { api } = await setup();
  const { status, body } = await api.delegate("scout", { [field]: instant });
  expect([status, body.details?.issues]).toEqual([
    400,
    [{ path: field, reason: "must be before the year 9000" }],
  ]);
});

test("what is no instant has one reason", async () => {
  const { api } = await setup();
  const { status, body } = await api.delegate("scout", { deadline: "tomorrow" });
  expect([status, body.details?.issues]).toEqual([400, [{ path: "deadline", reason: expect.any(String) }]]);
  expect(body.details?.issues[0]?.reason).not.toContain("9000");
});

test("the latest accepted instants are formatted correctly", async () => {
  const { api } = await setup();
  const not_before = "8999-12-31T23:59:59.999Z";
  const { body } = await api.delegate("scout", { not_before, ttl_seconds: 31_536_000 });
  expect([body.not_before_at, body.deadline_at]).toEqual([not_before, "9000-12-31T23:59:59.999Z"]);
});

test("a repeated query parameter is refused", async () => {
  const { api } = await setup();
  const { status, body } = await api.call("GET", "/v1/delegations?limit=1&state=completed&limit=2");
  expect([status, body.code]).toEqual([400, "invalid_request"]);
  expect(body.details.issues).toEqual([{ path: "limit", reason: "appears more than once in the query" }]);
});

test("an empty Last-Event-ID counts as absent", async () => {
  const { api } = await setup();
  const { id } = (await api.delegate("scout")).body;
  const headers = { accept: "application/json", "last-event-id": "" };
  const { status, body } = await api.call("GET", `/v1/delegations/${id}/events?after=0`, undefined, headers);
  expect([status, body.events?.length]).toEqual([200, 1]);
});

test.each([
  ["with its length", "Content-Length: 100\r\n\r\n", ""],
  ["in chunks", "Transfer-Encoding: chunked\r\n\r\n", "64\r\n"],
])("a client that disconnects in the middle of a body, %s, is not an outage", async (_how, head, before) => {
  const { url, log } = await setup();
  const { hostname, port } = new URL(url);
  const metrics = async () => {
    const answer = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${OPERATOR}` } });
    return (await answer.text()).split("\n").filter((line) => /^errand_http_requests_total.*POST/.test(line));
  };
  const socket = connect(Number(port), hostname);
  const first = `POST /v1/delegations HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${OPERATOR}\r\n`;
  socket.write(`${first}Content-Type: application/json\r\nExpect: 100-continue\r\n${head}`);
  // From here on the gateway reads the body.
  await once(socket, "data");
  socket.write(`${before}{"target":`, () => socket.resetAndDestroy());
  const [line] = await until(async () => {
    const lines = await metrics();
    return lines.length > 0 ? lines : null;
  });
  expect(line).toContain('status="400"');
  expect(log.join("")).not.toContain("internal error");
});

test("health and readiness need no token", async () => {
  const { url } = await setup();
  expect(await request(url, "GET", "/healthz", { token: null })).toMatchObject({ status: 200 });
  expect(await request(url, "GET", "/readyz", { token: null })).toMatchObject({ status: 200 });
});

test("a token, in a header, a query or a body, reaches no log line", async () => {
  const { url, log } = await setup();
  const canary = `errand_${"canary".repeat(11).slice(0, 62)}`;
  await request(url, "GET", `/v1/agents?token=${canary}`, { token: canary });
  await request(url, "POST", "/v1/delegations", { body: { target: "scout", task: canary } });
  await request(url, "POST", "/v1/delegations", { body: `{"${canary}` });
  await request(url, "GET", `/v1/delegations/${canary}`);
  expect(log.join("")).not.toContain("canary");
});
