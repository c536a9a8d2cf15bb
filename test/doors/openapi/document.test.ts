/** The OpenAPI document: valid, complete, and the same as what a broker accepts and answers. */
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { ROUTES } from "../../../src/doors/http/app.ts";
import type { Route } from "../../../src/doors/http/route.ts";
import { docsPage } from "../../../src/doors/openapi/docs-page.ts";
import { API_INFO, openapi } from "../../../src/doors/openapi/document.ts";
import { digestOf } from "../../../src/engine/links/fitting.ts";
import { ERRORS } from "../../../src/schema/errors.ts";
import { type Answer, client, request, startBroker } from "../../support/broker.ts";
import { startFileBroker } from "../../support/files.ts";
import { openStream } from "../../support/sse.ts";

const document = openapi(ROUTES, API_INFO);
const plain: Record<string, unknown> = JSON.parse(JSON.stringify(document));
const ajv = new Ajv2020({ strict: false, allErrors: true });
ajv.addFormat("date-time", (text: string) => !Number.isNaN(Date.parse(text)));
ajv.addSchema(plain, "openapi");

const DELEGATION = `dlg_0_${"0".repeat(26)}`;
const LEASE = `lse_0_${"0".repeat(26)}_1`;

const nameOf = ({ method, path }: Route): string => `${method} ${path}`;
const operationOf = ({ method, path }: Route) => document.paths[path]?.[method.toLowerCase()];

/** The validator of the part of the document at this place; null if there is none. */
function validatorAt(...place: readonly (string | number)[]): ValidateFunction | null {
  let node: unknown = plain;
  for (const key of place) node = membersOf(node)[key];
  if (node === undefined) return null;
  const pointer = place.map((key) => String(key).replaceAll("~", "~0").replaceAll("/", "~1"));
  return ajv.compile({ $ref: `openapi#/${pointer.map(encodeURIComponent).join("/")}` });
}
const bodyValidator = ({ method, path }: Route) =>
  validatorAt("paths", path, method.toLowerCase(), "requestBody", "content", "application/json", "schema");

function membersOf(node: unknown): Record<string, unknown> {
  return typeof node === "object" && node !== null ? { ...node } : {};
}

/** The route of a request, found by its path as a client would: the one with the fewest placeholders. */
function routeOf(method: string, url: string): Route {
  const [path = ""] = url.split("?");
  const parameters = (route: Route) => route.path.split("{").length;
  const fits = ROUTES.filter(
    (route) =>
      route.method === method && new RegExp(`^${route.path.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(path),
  ).sort((a, b) => parameters(a) - parameters(b));
  if (fits[0] === undefined) throw new Error(`no route for ${method} ${path}`);
  return fits[0];
}

/** Checks a request and its response against the document: status, media type, headers and both bodies. */
function expectDescribed(route: Route, sent: unknown, { status, headers, body }: Answer): void {
  const what = `${nameOf(route)} → ${status} ${JSON.stringify(body)}`;
  const described = operationOf(route)?.responses[status];
  if (described === undefined) throw new Error(`${what}: this status is not described`);
  const refusal = "$ref" in described;
  const place = refusal
    ? ["components", "responses", `Problem${status}`]
    : ["paths", route.path, route.method.toLowerCase(), "responses", String(status)];
  const type = headers.get("content-type")?.split(";")[0] ?? "";
  const validate = validatorAt(...place, "content", type, "schema");
  if (body !== null && !route.notes?.sendsBytes) {
    if (!validate) throw new Error(`${what}: ${type} is not described`);
    expect([what, validate(body), validate.errors]).toEqual([what, true, null]);
    // The document allows additional fields in responses; today each field is described.
    if (!refusal)
      expect([what, route.responses[status]?.safeParse(body).error?.issues]).toEqual([what, undefined]);
  }
  const answer = refusal ? document.components.responses[`Problem${status}`] : described;
  for (const name of Object.keys((answer && "headers" in answer ? answer.headers : undefined) ?? {})) {
    if (name !== "Idempotency-Replayed") expect([what, name, headers.has(name)]).toEqual([what, name, true]);
  }
  if (status < 300 && sent !== undefined && !route.notes?.receivesBytes) {
    const validateSent = bodyValidator(route);
    expect([what, validateSent?.(sent), validateSent?.errors]).toEqual([what, true, null]);
  }
}

/** A broker whose every response is checked against the document; `seen` are the routes that succeeded. */
async function setup() {
  const { url, gateway } = await startFileBroker();
  const seen = new Set<string>();
  const call = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const answer = await request(url, method, path, { headers, ...(body !== undefined && { body }) });
    const route = routeOf(method, path);
    expectDescribed(route, body, answer);
    if (answer.status < 300) seen.add(nameOf(route));
    return answer;
  };
  return { url, seen, call, gateway };
}

describe("the document", () => {
  test("is valid OpenAPI 3.1", async () => {
    const validator = new Validator();
    expect(await validator.validate(plain)).toEqual({ valid: true });
    expect(validator.version).toBe("3.1");
  });

  test("has every route and no other, each with a unique operation id and a described tag", () => {
    const listed = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(listed.sort()).toEqual(ROUTES.map(nameOf).sort());
    const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
    const ids = operations.map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    // Verbs of the product; a generated client has a function of this name.
    expect(ids.filter((id) => !/^[a-z]+(?:[A-Z]\w*)?$/.test(id) || /^(?:post|put)/.test(id))).toEqual([]);
    expect(ids).toEqual(
      expect.arrayContaining(["delegate", "answerQuestion", "leaseWork", "heartbeat", "reply"]),
    );
    const tags = new Set(operations.flatMap(({ tags: own }) => own));
    expect([...tags].sort()).toEqual(document.tags.map(({ name }) => name).sort());
  });

  test("has every code of the error table that has a status, under that status", () => {
    for (const [code, { status }] of Object.entries(ERRORS)) {
      // No operation that is described lacks its own method.
      if (status === null || status === 405) continue;
      const answer = document.components.responses[`Problem${status}`];
      expect(JSON.stringify(answer?.content)).toContain(`"${code}"`);
    }
  });

  test("has every component that it refers to, and no others", () => {
    const refs = new Set([...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref]) => ref));
    const parts = Object.entries(document.components)
      .filter(([kind]) => kind !== "securitySchemes")
      .flatMap(([kind, named]) => Object.keys(named).map((name) => `#/components/${kind}/${name}`));
    expect([...refs].sort()).toEqual(parts.sort());
  });

  test("contains no large schema twice", () => {
    const shapes: string[] = [];
    const walk = (node: unknown) => {
      if (Object.keys(membersOf(membersOf(node).properties)).length > 4) shapes.push(JSON.stringify(node));
      Object.values(membersOf(node)).forEach(walk);
    };
    walk(plain);
    expect(shapes.length).toBeGreaterThan(10);
    expect(new Set(shapes).size).toBe(shapes.length);
    expect(document.components.schemas.AcceptedDelegation?.allOf?.[0]).toEqual({
      $ref: "#/components/schemas/Delegation",
    });
  });
});

test("the responses of a broker, on every route, match the document", async () => {
  const { url, seen, call, gateway } = await setup();
  const made = await call("POST", "/v1/tokens", { principal: "caller:alice", expires_in_seconds: 60 });
  await call("GET", "/v1/tokens");
  await call("GET", "/v1/audit");
  await call("GET", "/v1/status");
  await call("GET", "/v1/stats");
  await call("GET", "/v1/stats/agents");
  const file = await call("POST", "/v1/files", "1");
  await call("GET", "/v1/files");
  await call("GET", `/v1/files/${file.body.id}`);
  const upload = await call("POST", "/v1/uploads", undefined, { "upload-length": "3" });
  await call("GET", `/v1/uploads/${upload.body.id}`);
  await call("PATCH", `/v1/uploads/${upload.body.id}`, 1, { "upload-offset": "0" });
  await call("DELETE", `/v1/uploads/${upload.body.id}`);
  await call("DELETE", `/v1/tokens/${made.body.id}`);
  await call("DELETE", `/v1/tokens/${made.body.id}`);

  const skill = { id: "dig", name: "Dig", description: "Digs.", tags: ["x"], examples: ["dig here"] };
  await call("PUT", "/v1/agents/scout", {});
  await call("PATCH", "/v1/agents/scout", { version: "2" });
  await call("GET", "/v1/agents/scout/workers");
  await call("GET", "/v1/agents/scout/load");
  const naming = { target: "scout", message: { parts: [{ url: file.body.url }] } };
  const filed = await call("POST", "/v1/delegations", naming);
  await call("GET", `/v1/delegations/${filed.body.id}/files/${file.body.id}`);
  await call("POST", `/v1/delegations/${filed.body.id}/cancel`, {});
  await call("DELETE", `/v1/files/${file.body.id}`);
  const settings = { description: "d", skills: [skill], limits: { max_waiting: 3 }, backoff: { jitter: 0 } };
  await call("PUT", "/v1/agents/scout", { ...settings, delivery: { mode: "poll" }, accepts_from: ["*"] });
  for (const verb of ["pause", "resume"]) await call("POST", `/v1/agents/scout/${verb}`);
  await call("GET", "/v1/agents/scout");
  await call("GET", "/v1/agents");
  await call("GET", "/v1/agents/nobody");

  const task = { target: "scout", task: "dig", metadata: { a: 1 }, ttl_seconds: 600, priority: 7 };
  const key = { "idempotency-key": "k" };
  const { id } = (await call("POST", "/v1/delegations", task, { ...key, traceparent: TRACE })).body;
  expect((await call("POST", "/v1/delegations", task, key)).status).toBe(200);
  expect((await call("POST", "/v1/delegations", { ...task, task: "x" }, key)).status).toBe(422);
  const message = { parts: [{ text: "a" }, { data: { b: null } }], extensions: ["urn:x"] };
  await call("POST", "/v1/delegations", { target: "scout", message });
  await call("POST", "/v1/delegations", { target: "scout", task: "x", delay_seconds: 60 });
  expect((await call("POST", "/v1/delegations", task)).status).toBe(429);
  await call("POST", "/v1/delegations", "[");
  await call("GET", `/v1/delegations/${id}?wait_seconds=0&after_version=0`);
  await call("GET", `/v1/delegations/${DELEGATION}`);

  const take = async () => (await call("POST", "/v1/agents/scout/leases", { worker_id: "w" })).body.leases[0];
  await call("POST", `/v1/leases/${(await take()).lease_id}/release`, { reason: "later" });
  const { lease_id } = await take();
  const at = `/v1/leases/${lease_id}`;
  const progress = { message: "half", tools_used: ["spade"], done: 1, total: 2, eta_seconds: 3 };
  await call("POST", `${at}/heartbeat`, { progress });
  const artifact = { artifactId: "a", name: "hole", parts: [{ text: "deep", mediaType: "text/plain" }] };
  await call("POST", `${at}/artifacts`, { artifact, last_chunk: true });
  await call("GET", `/v1/delegations/${id}`);
  const stream = await openStream(`${url}/v1/delegations/${id}/events`);
  const next = { wait_seconds: 5 };
  const replied = await call("POST", `${at}/reply`, { state: "completed", text: "dug", next });
  expect(replied.body.leases).toHaveLength(1);
  await call("POST", `${at}/heartbeat`, {});
  const error = { code: "no_spade", message: "There is none.", retryable: false };
  await call("POST", `/v1/leases/${replied.body.leases[0].lease_id}/reply`, { state: "failed", error });

  await stream.ended();
  const everything = await openStream(`${url}/v1/events?after=0`);
  await everything.has("DELEGATION_FAILED");
  everything.close();
  const event = validatorAt("components", "schemas", "StreamEvent");
  for (const [path, { headers, events }] of [
    [`/v1/delegations/${id}/events`, stream],
    ["/v1/events", everything],
  ] as const) {
    expect(headers.get("content-type")).toMatch(/^text\/event-stream/);
    expect(operationOf(routeOf("GET", path))?.["x-event-stream"]?.schema).toEqual({
      $ref: "#/components/schemas/StreamEvent",
    });
    for (const { data } of events) expect([data, event?.(data)]).toEqual([data, true]);
  }
  expect(stream.events.map(({ event: type }) => type)).toContain("DELEGATION_COMPLETE");

  const json = { accept: "application/json" };
  await call("GET", `/v1/delegations/${id}/events`, undefined, json);
  const page = await call("GET", `/v1/delegations/${id}/events?after=0&limit=100`, undefined, json);
  const past = `/v1/delegations/${id}/events?after=${page.body.cursor}`;
  expect((await call("GET", past, undefined, json)).status).toBe(204);
  await call("GET", "/v1/events?after=0&types=DELEGATION_SENT,DELEGATION_FAILED", undefined, json);
  await call("GET", "/v1/delegations?state=completed&limit=1");
  await call("GET", "/v1/results?limit=10");

  const again = (await call("POST", "/v1/delegations/redrive", { target: "scout", limit: 1 })).body
    .delegations[0];
  expect(await call("POST", `/v1/delegations/${again.redrive_of}/redrive`)).toMatchObject({
    status: 202,
    body: { id: again.id },
  });
  await call("POST", "/v1/delegations/cancel", { target: "scout", limit: 1 });
  expect((await call("DELETE", `/v1/delegations/${again.id}`)).status).toBe(204);

  await call("PUT", "/v1/agents/asker", {});
  const callback = { url: "https://hooks.example.com/", secret: `whsec_${"a".repeat(32)}`, token: "t" };
  const batch = [
    { target: "asker", task: "ask", callback, idempotency_key: "b" },
    { target: "nobody", task: "x" },
  ];
  const { results } = (await call("POST", "/v1/delegations/batch", { delegations: batch })).body;
  const asking = results[0].delegation.id;
  await call("POST", "/v1/delegations", { target: "asker", task: "part", parent_id: asking });
  const asks = async () => (await call("POST", "/v1/agents/asker/leases", {})).body.leases[0].lease_id;
  const first = await asks();
  await call("POST", `/v1/delegations/${asking}/messages`, { text: "hurry" });
  const [unseen] = (await call("POST", `/v1/leases/${first}/heartbeat`, {})).body.messages;
  await call("POST", `/v1/leases/${first}/heartbeat`, { seen: unseen.messageId });
  const action = { name: "sail", arguments: { to: ["sea", null] } };
  const requests = [
    { request_id: "r", text: "Which?", options: ["approve", { b: 1 }], schema: { type: "object" } },
    { request_id: "s", text: "May I?", options: ["approve", "deny"], action, edit: true },
  ];
  const raised = (await call("POST", `/v1/leases/${first}/interrupt`, { kind: "input", requests })).body;
  await call("GET", `/v1/delegations/${asking}`);
  const answers = {
    r: { decision: "approve", text: "a", data: { b: [null] } },
    s: { decision: "approve", data: { to: 7 } },
  };
  await call("POST", `/v1/delegations/${asking}/answer`, { interrupt_id: raised.interrupt_id, answers });
  expect((await call("GET", "/v1/answers")).body.answers[0].requests[1].changes.total).toBe(1);
  const [back] = (await call("POST", "/v1/agents/asker/leases", {})).body.leases;
  const known = await call("POST", `/v1/leases/${back.lease_id}/interrupt`, { kind: "input", requests });
  expect(known.body.answers.r.decision).toBe("approve");
  const use = { interrupt_id: known.body.interrupt_id, request_id: "r" };
  for (const [use_key, used] of Object.entries({ one: "now", two: "before" }))
    expect((await call("POST", `/v1/leases/${back.lease_id}/use`, { ...use, use_key })).body.used).toBe(used);
  const more = { kind: "input", request_id: "t", text: "And then?", hold: true };
  expect((await call("POST", `/v1/leases/${back.lease_id}/interrupt`, more)).body.held_until).toBeDefined();
  await call("GET", `/v1/delegations/${asking}`);
  await call("POST", `/v1/leases/${back.lease_id}/heartbeat`, { in_state: "input_required" });
  await call("GET", `/v1/delegations/${asking}/events?after=0`, undefined, json);

  await call("PUT", "/v1/agents/lead", {});
  const led = (await call("POST", "/v1/delegations", { target: "lead", task: "x" })).body.id;
  const part = (await call("POST", "/v1/delegations", { target: "asker", task: "part", parent_id: led })).body
    .id;
  const leads = async () => (await call("POST", "/v1/agents/lead/leases", {})).body.leases[0];
  const waits = { children: [part], until: "any", time_limit_seconds: 60, checkpoint: { a: 1 } };
  expect((await call("POST", `/v1/leases/${(await leads()).lease_id}/await`, waits)).body.awaits.left).toBe(
    1,
  );
  await call("GET", `/v1/delegations/${led}`);
  await call("POST", `/v1/delegations/${part}/cancel`);
  const resumed = await leads();
  expect(resumed.awaited.outcome).toBe("ended");
  await call("POST", `/v1/leases/${resumed.lease_id}/await`, waits);
  await call("GET", `/v1/delegations/${led}/events?after=0`, undefined, json);
  await call("GET", `/v1/delegations/${led}/tree`);
  await call("GET", `/v1/delegations/${led}/tree/events?after=0`, undefined, json);

  await call("PUT", "/v1/agents/relay", {});
  await call("POST", "/v1/delegations", { target: "relay", task: "x" });
  const [held] = (await call("POST", "/v1/agents/relay/leases", {})).body.leases;
  const result = { message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "y" }] } };
  await call("POST", "/v1/agents/relay/replies", { jsonrpc: "2.0", id: held.lease_id, result });

  const session = (await call("POST", "/v1/sessions")).body;
  await call("POST", "/v1/sessions/codes");
  await call("GET", "/v1/sessions?limit=1");
  expect((await call("DELETE", `/v1/sessions/${session.id}`)).status).toBe(204);

  const [waiting] = (await call("GET", "/v1/delegations?target=scout&state=submitted")).body.delegations;
  await call("DELETE", "/v1/agents/scout");
  await call("POST", `/v1/delegations/${waiting.id}/cancel`, { reason: "enough" });
  await call("POST", `/v1/delegations/${id}/cancel`);
  const schedule = { cron: "0 9 * * *", delegation: { target: "scout", task: "do it" } };
  const scheduled = (await call("POST", "/v1/schedules", schedule)).body.id;
  await call("PATCH", `/v1/schedules/${scheduled}`, { name: "daily", cron: null, every_seconds: 60 });
  await call("POST", `/v1/schedules/${scheduled}/run`);
  await call("POST", `/v1/schedules/${scheduled}/pause`);
  await call("POST", `/v1/schedules/${scheduled}/resume`);
  await call("GET", "/v1/schedules");
  await call("GET", `/v1/schedules/${scheduled}`);
  await call("GET", `/v1/schedules/${scheduled}/runs`);
  await call("DELETE", `/v1/schedules/${scheduled}`);
  const rule = { agent: "scout", action: "write", decision: "deny", arguments: [{ name: "n", equals: 1 }] };
  const ruled = (await call("POST", "/v1/rules", rule)).body.id;
  await call("GET", "/v1/rules");
  await call("GET", `/v1/rules/${ruled}`);
  await call("DELETE", `/v1/rules/${ruled}`);
  const subscription = {
    events: ["question"],
    deliver: [{ kind: "ntfy", url: "https://ntfy.example/topic" }],
  };
  const subscribed = (await call("POST", "/v1/subscriptions", subscription)).body.id;
  await call("GET", "/v1/subscriptions");
  await call("GET", "/v1/web-push-key");
  await call("GET", `/v1/subscriptions/${subscribed}`);
  await call("PATCH", `/v1/subscriptions/${subscribed}`, { name: "phone" });
  await call("POST", `/v1/subscriptions/${subscribed}/resume`);
  await call("POST", `/v1/subscriptions/${subscribed}/test`);
  await call("DELETE", `/v1/subscriptions/${subscribed}`);
  await call("PUT", "/v1/agents/linked", {});
  const linked = (await call("POST", "/v1/delegations", { target: "linked", task: "x" })).body.id;
  const [holder] = (await call("POST", "/v1/agents/linked/leases", {})).body.leases;
  await call("POST", `/v1/leases/${holder.lease_id}/interrupt`, {
    kind: "input",
    text: "?",
    options: ["approve", "deny"],
  });
  const owned = (await call("POST", "/v1/subscriptions", subscription)).body.id;
  const { interrupt } = (await call("GET", `/v1/delegations/${linked}`)).body;
  const token = await gateway.broker.links.mint(
    {
      ...{
        person: "operator",
        subscription: owned,
        channel: "ntfy",
        epoch: "",
        delegation: linked,
        may: "answer",
      },
      ...{ question: interrupt.id, digest: digestOf(interrupt) },
    },
    Date.now() + 60_000,
  );
  await call("POST", "/v1/links/question", { token });
  await call("POST", "/v1/links/answer", { token, decision: "deny" });
  await call("DELETE", "/v1/agents/scout?force=true");
  expect([...seen].sort()).toEqual(ROUTES.map(nameOf).sort());
});

const TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

describe("unknown fields", () => {
  const filled = (path: string) =>
    path
      .replace("{agent}", "scout")
      .replace("{lease_id}", LEASE)
      .replace("{schedule}", `sch_${"0".repeat(26)}`)
      .replace("{rule}", `rul_${"0".repeat(26)}`)
      .replace("{subscription}", `sub_${"0".repeat(26)}`)
      .replace("{id}", DELEGATION);

  test("are refused in the query of every route", async () => {
    const { call } = await setup();
    for (const route of ROUTES) {
      const { status, body } = await call(route.method, `${filled(route.path)}?no_such_field=1`);
      expect([nameOf(route), status, body.details?.issues?.[0]?.path]).toEqual([
        nameOf(route),
        400,
        "no_such_field",
      ]);
    }
  });

  const nested: [string, Record<string, unknown>][] = [
    ["PUT /v1/agents/{agent}", { limits: { no_such_field: 1 } }],
    ["PUT /v1/agents/{agent}", { backoff: { no_such_field: 1 } }],
    ["PUT /v1/agents/{agent}", { delivery: { mode: "poll", no_such_field: 1 } }],
    ["POST /v1/leases/{lease_id}/heartbeat", { progress: { no_such_field: 1 } }],
    ["POST /v1/leases/{lease_id}/reply", { state: "completed", next: { no_such_field: 1 } }],
    [
      "POST /v1/leases/{lease_id}/reply",
      { state: "failed", error: { code: "x", message: "y", no_such_field: 1 } },
    ],
  ];
  // Its body is A2A's, whose objects may have further members.
  const OPEN = ["POST /v1/agents/{agent}/replies"];
  const bodies = [
    ...ROUTES.filter((route) => route.schemas.body && !OPEN.includes(nameOf(route))).map(
      (route) => [nameOf(route), { no_such_field: 1 }] as const,
    ),
    ...nested,
  ];

  test.each(bodies)("are refused by schema and broker alike: %s %j", async (name, body) => {
    const route = ROUTES.find((one) => nameOf(one) === name);
    if (!route) throw new Error(`no route ${name}`);
    const { call } = await setup();
    const { body: problem } = await call(route.method, filled(route.path), body);
    const named = (problem.details?.issues ?? []).some(({ path }: { path: string }) =>
      /(?:^|\.)no_such_field$/.test(path),
    );
    const validate = bodyValidator(route);
    validate?.(body);
    const additional = (validate?.errors ?? []).some(
      ({ params }) => params.additionalProperty === "no_such_field",
    );
    expect({ named, additional }).toEqual({ named: true, additional: true });
  });
});

describe("rules over several members", () => {
  const message = { parts: [{ text: "x" }] };
  const work = { target: "scout", task: "x" };
  const instant = "2100-01-01T00:00:00Z";
  const question = { kind: "input", text: "Which?" };
  test.each<[string, string, Record<string, unknown>]>([
    ["POST /v1/delegations", "task", { target: "scout" }],
    ["POST /v1/delegations", "task", { ...work, message }],
    ["POST /v1/delegations", "delay_seconds", { ...work, delay_seconds: 1, not_before: instant }],
    ["POST /v1/delegations", "ttl_seconds", { ...work, ttl_seconds: 1, deadline: instant }],
    ["POST /v1/delegations/{id}/messages", "text", {}],
    ["POST /v1/delegations/{id}/messages", "text", { text: "x", message }],
    ["POST /v1/delegations/{id}/answer", "answers", { interrupt_id: "int_1" }],
    ["POST /v1/delegations/{id}/answer", "answers", { interrupt_id: "int_1", text: "x", answers: {} }],
    ["POST /v1/delegations/{id}/answer", "text", { interrupt_id: "int_1", text: "x", message }],
    ["POST /v1/leases/{lease_id}/interrupt", "requests", { ...question, requests: [{ text: "x" }] }],
    ["POST /v1/leases/{lease_id}/interrupt", "text", { ...question, message }],
    ["POST /v1/leases/{lease_id}/reply", "text", { state: "completed", text: "x", message }],
  ])("are kept by schema and broker alike: %s refuses at %s %j", async (name, member, body) => {
    const route = ROUTES.find((one) => nameOf(one) === name);
    if (!route) throw new Error(`no route ${name}`);
    const { call } = await setup();
    const path = route.path.replace("{lease_id}", LEASE).replace("{id}", DELEGATION);
    const { status, body: problem } = await call(route.method, path, body);
    expect([status, problem.details.issues[0].path]).toEqual([400, member]);
    expect(bodyValidator(route)?.(body)).toBe(false);
  });

  test("are types where generators make types of them", () => {
    const branches = document.components.schemas.DelegateRequest?.oneOf;
    expect(branches?.map(({ type, required }) => [type, required])).toEqual([
      ["object", ["task"]],
      ["object", ["message"]],
    ]);
    expect(document.components.schemas.DeliveryRequest).toMatchObject({
      oneOf: [
        { $ref: "#/components/schemas/PollDelivery" },
        { $ref: "#/components/schemas/PushDeliveryRequest" },
      ],
      discriminator: {
        propertyName: "mode",
        mapping: {
          poll: "#/components/schemas/PollDelivery",
          push: "#/components/schemas/PushDeliveryRequest",
        },
      },
    });
  });
});

describe("a broker serves it", () => {
  test("without a token, as JSON and as a page", async () => {
    const { url } = await startBroker();
    const answer = await request(url, "GET", "/openapi.json", { token: null });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("application/json");
    expect(answer.body).toEqual(plain);
    const page = await fetch(`${url}/docs`);
    expect(page.status).toBe(200);
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(page.headers.get("content-security-policy")).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+'; /,
    );
    expect(await page.text()).toBe(docsPage(document).text);
    expect((await client(url, null).call("GET", "/v1/agents")).status).toBe(401);
  });

  test("the page has every route, shape and error code, and needs nothing from elsewhere", async () => {
    const text = docsPage(document).text;
    for (const { path } of ROUTES) expect(text).toContain(`<code>${path}</code>`);
    for (const name of Object.keys(document.components.schemas))
      expect(text).toContain(`id="schema-${name}"`);
    for (const code of Object.keys(ERRORS)) expect(text).toContain(`id="error-${code}"`);
    expect(text).not.toMatch(/<(?:script|link|img|iframe)|\bstyle=|\bon\w+=|@import|url\(|https?:/i);
    const ids = new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    const targets = [...text.matchAll(/ href="#([^"]+)"/g)].map(([, id]) => id);
    expect(targets.filter((id) => !ids.has(id))).toEqual([]);
    expect(text).not.toMatch(/undefined|\[object/);
  });

  test("text of the document is text on the page", async () => {
    const info = { ...API_INFO, title: '<b>"T"</b>', description: "a `<i>` & b" };
    const text = docsPage(openapi(ROUTES, info)).text;
    expect(text).toContain("<title>&lt;b&gt;&quot;T&quot;&lt;/b&gt; API</title>");
    expect(text).toContain("<p>a <code>&lt;i&gt;</code> &amp; b</p>");
  });
});
