/**
 * Bad input of the edges: ids, cursors and tags that nobody issued, and bodies that are small on the wire and large in memory. Each
 * row has one stable code and changes nothing.
 */
import { expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { dump } from "../support/dump.ts";

const MILLION = 1_000_000;
const MEMBERS = `{"target":"scout","task":"x","metadata":{${'"":0,'.repeat(MILLION)}"":0}}`;
const VALUES = `{"target":"scout","task":"x","metadata":{"a":[${"0,".repeat(MILLION)}0]}}`;

interface Ids {
  readonly id: string;
  readonly lease: string;
}
interface Row {
  readonly what: string;
  readonly path: string | ((ids: Ids) => string);
  readonly method?: string;
  readonly body?: string;
  readonly headers?: Record<string, string>;
  readonly status: number;
  /** The code of a problem, or the number of a JSON-RPC error. */
  readonly code: string | number;
}

const submit = (what: string, more: string, status = 400, code = "invalid_request"): Row => ({
  what: `submit: ${what}`,
  path: "/v1/delegations",
  body: `{"target":"scout","task":"x"${more}}`,
  status,
  code,
});
const SEND =
  '"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}';
const rpc = (what: string, id: string, code = -32600): Row => ({
  what: `JSON-RPC id: ${what}`,
  path: "/a2a/scout/rpc",
  body: `{"jsonrpc":"2.0","id":${id},${SEND}}`,
  headers: { "a2a-version": "1.0" },
  status: 200,
  code,
});
const mcp = (what: string, id: string): Row => ({
  what: `MCP id: ${what}`,
  path: "/mcp",
  body: `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"delegate","arguments":{"target":"scout","task":"x"}}}`,
  headers: { accept: "application/json, text/event-stream" },
  status: 400,
  code: -32600,
});
const delegation = (what: string, id: string, status = 404, code = "delegation_not_found"): Row => ({
  what: `delegation id: ${what}`,
  path: `/v1/delegations/${id}/cancel`,
  body: "{}",
  status,
  code,
});
const lease = (what: string, id: string, status = 404, code = "lease_unknown"): Row => ({
  what: `lease id: ${what}`,
  path: `/v1/leases/${id}/reply`,
  body: '{"state":"completed","text":"x"}',
  status,
  code,
});
const key = (what: string, value: string): Row => ({
  ...submit("", ""),
  what: `idempotency key: ${what}`,
  headers: { "idempotency-key": value },
});
const cursor = (what: string, value: string): Row => ({
  what: `cursor: ${what}`,
  method: "GET",
  path: ({ id }) => `/v1/delegations/${id}/events`,
  headers: { accept: "text/event-stream", "last-event-id": value },
  status: 400,
  code: "invalid_request",
});
const tag = (
  what: string,
  header: string,
  value: string,
  status = 412,
  code = "precondition_failed",
): Row => ({
  what: `entity tag: ${what}`,
  method: "PUT",
  path: "/v1/agents/scout",
  body: '{"description":"changed"}',
  headers: { [header]: value },
  status,
  code,
});

const ROWS: readonly Row[] = [
  { ...submit("10^6 members", ""), body: MEMBERS },
  { ...submit("10^6 values", ""), body: VALUES },
  {
    ...submit("", ""),
    what: "reply: 10^6 members",
    path: ({ lease }) => `/v1/leases/${lease}/reply`,
    body: MEMBERS,
  },
  {
    ...rpc("", "1", -32602),
    what: "A2A: 10^6 members",
    body: `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":${MEMBERS}}`,
  },
  {
    ...mcp("", "1"),
    what: "MCP: 10^6 members",
    body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delegate","arguments":${MEMBERS}}}`,
  },
  { ...submit("", ""), what: "AG-UI: 10^6 members", path: "/ag-ui/scout", body: MEMBERS },
  rpc("an object", "{}"),
  rpc("an array", "[1]"),
  rpc("a truth value", "true"),
  rpc("half a character", '"\\ud800"', -32602),
  mcp("an object", "{}"),
  mcp("an array", "[1]"),
  mcp("a truth value", "true"),
  mcp("null", "null"),
  mcp("half a character", '"\\ud800"'),
  mcp("a number beyond all", "1E400"),
  submit("an empty context", ',"context_id":""'),
  submit("a context of 513 characters", `,"context_id":"${"c".repeat(513)}"`),
  submit("a control character in a context", ',"context_id":"a\\u0000b"'),
  submit("half a character in a context", ',"context_id":"\\ud800"'),
  submit("a number as context", ',"context_id":7'),
  submit("a parent of another form", ',"parent_id":"dlg_0_x"'),
  submit("a path as parent", ',"parent_id":"../../x"'),
  delegation("of another form", "7"),
  delegation("of nobody", "dlg_0_00000000000000000000000000"),
  delegation("a path", "..%2F..%2Fagents%2Fscout"),
  delegation("a pattern", "dlg_0_*"),
  delegation("a zero byte", "dlg_0_%00"),
  delegation("a tag of a slot", "%7Berrand:0%7D:d:x"),
  delegation("10 000 characters", "d".repeat(10_000)),
  delegation("a broken escape", "%zz"),
  delegation("bytes that are no text", "%ff"),
  lease("of another form", "7"),
  lease("of nobody", "lse_0_00000000000000000000000000_1"),
  lease("a path", "..%2F..%2Fx"),
  lease("10 000 characters", "l".repeat(10_000)),
  {
    ...lease("", ""),
    what: "lease id: a fence beyond all numbers",
    path: ({ lease }) => `/v1/leases/${lease.replace(/\d+$/, "9".repeat(400))}/reply`,
  },
  {
    what: "question id: of nobody",
    path: ({ id }) => `/v1/delegations/${id}/answer`,
    body: '{"interrupt_id":"int_x","text":"yes"}',
    status: 409,
    code: "interrupt_not_open",
  },
  key("too long", "k".repeat(300)),
  key("empty", ""),
  key("a control character", "a\tb"),
  key("bytes beyond ASCII", "caf\u00e9"),
  cursor("of another form", "garbage"),
  cursor("a negative position", "-1"),
  cursor("a position beyond all numbers", "9".repeat(400)),
  cursor("10 000 characters", "1-".repeat(5_000)),
  {
    ...cursor("", ""),
    what: "cursor: in the query",
    path: ({ id }) => `/v1/delegations/${id}/events?after=garbage`,
    headers: {},
  },
  { ...cursor("", ""), what: "cursor: of a list", path: "/v1/delegations?cursor=garbage", headers: {} },
  tag("without quotes", "if-match", "abc"),
  tag("a lone quote", "if-match", '"'),
  tag("of nothing", "if-match", '"00000000"'),
  tag("a list of 1000", "if-match", Array.from({ length: 1000 }, (_, n) => `"${n}"`).join(",")),
  tag("none, but it exists", "if-none-match", "*"),
];

async function setup() {
  const broker = await startBroker({ maxBodyBytes: 32 * 1_048_576 });
  const api = client(broker.url);
  await api.agent("scout");
  const { id } = (await api.delegate("scout")).body;
  const { lease_id } = (await api.lease("scout")).body.leases[0];
  return { ...broker, ids: { id: String(id), lease: String(lease_id) } };
}

const of = <T extends string>(value: T | ((ids: Ids) => T), ids: Ids): T =>
  typeof value === "function" ? value(ids) : value;

test("bad input of the edges has a stable code and changes nothing", async () => {
  const { url, redis, ids } = await setup();
  const before = await dump(redis);
  for (const { what, method = "POST", path, body, headers, status, code } of ROWS) {
    const answer = await fetch(`${url}${of(path, ids)}`, {
      method,
      headers: { authorization: `Bearer ${OPERATOR}`, "content-type": "application/json", ...headers },
      ...(body !== undefined && { body }),
    });
    const found = await answer.json();
    expect([what, answer.status, found.error?.code ?? found.code]).toEqual([what, status, code]);
    expect(await dump(redis), what).toEqual(before);
  }
});

test("a body of 10^6 members is larger than the default limit of a body", async () => {
  const { another } = await setup();
  const { url } = await another({ maxBodyBytes: 1_048_576 });
  const answer = await client(url).call("POST", "/v1/delegations", MEMBERS);
  expect([answer.status, answer.body.code]).toEqual([413, "payload_too_large"]);
});
