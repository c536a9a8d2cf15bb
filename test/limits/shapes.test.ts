/** Bodies with more values than a gateway checks: refused in every API, before any schema sees them. */
import { describe, expect, test } from "vitest";
import { extentOf, parseBody } from "../../src/doors/http/body.ts";
import { countValues, requireBounded } from "../../src/doors/mcp/bounds.ts";
import { LIMITS } from "../../src/schema/limits.ts";
import { as, client, OPERATOR, startBroker } from "../support/broker.ts";
import { SHAPES } from "./shapes.ts";

const MEMBERS = LIMITS.json_members.value;
const VALUES = LIMITS.json_values.value;
const MCP_VALUES = LIMITS.mcp_message_values.value;

test.each([
  ["1", 0, 0, 0],
  ['"a:b,{["', 0, 0, 0],
  ["[]", 1, 0, 0],
  [" [ ] ", 1, 0, 0],
  ["{ }", 1, 0, 0],
  ["[1]", 1, 0, 1],
  ["[[],[[]]]", 3, 0, 3],
  ['{"a":1}', 1, 1, 1],
  ['{"a:{,":"\\",:","b":[1,2,{}]}', 3, 2, 5],
  ['[{"a":{"b":{}}},{}]', 4, 2, 4],
])("%s has depth %i, %i members and %i values", (text, depth, members, values) => {
  expect(extentOf(text)).toEqual({ depth, members, values, isExact: true });
  expect(countValues(JSON.parse(text), 100)).toBe(values);
  expect(countValues(JSON.parse(text), 1)).toBe(Math.min(values, 2));
});

const parsed = (text: string) => parseBody(Buffer.from(text), "application/json");
const objects = (count: number) =>
  `[${Array.from({ length: count }, (_, n) => `{"${n.toString(36)}":0}`).join()}]`;

test("a body is refused beyond the number of members or values, and not at it", () => {
  expect(parsed(objects(MEMBERS))).toHaveLength(MEMBERS);
  expect(() => parsed(objects(MEMBERS + 1))).toThrow(`${MEMBERS + 1} members`);
  expect(parsed(`[${"1,".repeat(VALUES - 1)}1]`)).toHaveLength(VALUES);
  expect(() => parsed(`[${"1,".repeat(VALUES)}1]`)).toThrow(`${VALUES + 1} values`);
});

test("every API refuses too many members or values with the number, and changes nothing", async () => {
  const { url } = await startBroker();
  const operator = client(url);
  await operator.agent("scout");
  const [caller, agent] = [await as(url, "caller:alice"), await as(url, "agent:scout")];
  const tokens = { operator: OPERATOR, caller: caller.token, agent: agent.token };
  for (const { name, method = "POST", path, as: who, headers = {}, body } of SHAPES) {
    const text = JSON.stringify(body(30_000));
    const answer = await fetch(url + path.replace("{agent}", "scout"), {
      method,
      headers: { authorization: `Bearer ${tokens[who]}`, "content-type": "application/json", ...headers },
      body: text.replaceAll("{agent}", "scout"),
    });
    const said = await answer.text();
    expect([name, said]).toEqual([
      name,
      expect.stringMatching(/invalid_request|INVALID_ARGUMENT|payload_too_large/),
    ]);
    expect([name, said]).toEqual([
      name,
      expect.stringMatching(/the limit is \d+|at most \d+|<=\d+|more than \d+/),
    ]);
  }
  expect((await operator.call("GET", "/v1/delegations")).body.delegations).toEqual([]);
});

describe("messages of MCP", () => {
  const call = (method: string, params: object) => ({ jsonrpc: "2.0", id: 1, method, params });
  const filled = (count: number) => Array.from({ length: count }, () => 0);

  test.each([
    [
      "tools/list with much in _meta",
      call("tools/list", { _meta: { x: filled(MCP_VALUES) } }),
      "invalid_request",
    ],
    [
      "tools/call with much in _meta",
      call("tools/call", { name: "x", _meta: { x: filled(MCP_VALUES) } }),
      "invalid_request",
    ],
    [
      "initialize with many capabilities",
      call("initialize", { capabilities: { x: filled(MCP_VALUES) } }),
      "invalid_request",
    ],
    [
      "an answer with many values",
      { jsonrpc: "2.0", id: 1, result: { x: filled(MCP_VALUES) } },
      "invalid_request",
    ],
    ["a batch with many values", Array.from({ length: 400 }, () => call("x", {})), "invalid_request"],
    [
      "a large initialize",
      call("initialize", { x: "x".repeat(LIMITS.mcp_message_bytes.value) }),
      "payload_too_large",
    ],
    ["a large ping", call("ping", { x: "x".repeat(LIMITS.mcp_message_bytes.value) }), "payload_too_large"],
    [
      "a call with large arguments",
      call("tools/call", { name: "x", arguments: { x: filled(15_000) } }),
      null,
    ],
    ["a large update", call("tasks/update", { x: "x".repeat(LIMITS.mcp_message_bytes.value) }), null],
  ])("%s", (_, body, code) => {
    const check = () => requireBounded(body, JSON.stringify(body).length);
    if (code === null) expect(check).not.toThrow();
    else expect(check).toThrow(expect.objectContaining({ code }));
  });
});

test("a tool call has few arguments, and as many values in each as a body may have", () => {
  const call = (given: object) => ({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { arguments: given },
  });
  const members = Object.fromEntries(Array.from({ length: MCP_VALUES }, (_, n) => [`m${n}`, {}]));
  expect(() => requireBounded(call({ data: members }), 100_000)).not.toThrow();
  expect(() => requireBounded(call(members), 100_000)).toThrow(`more than ${MCP_VALUES} members`);
  expect(() => requireBounded([call({}), call(members)], 100_000)).toThrow(`more than ${MCP_VALUES} members`);
});
