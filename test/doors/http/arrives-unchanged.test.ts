/** What the doors accept arrives unchanged: numbers in bodies, and the ids of JSON-RPC requests. */

import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { Bridge } from "../../../src/cli/mcp/bridge.ts";
import { as, OPERATOR, startBroker } from "../../support/broker.ts";
import { LEGACY, MODERN, openSession } from "../../support/mcp.ts";
import { until } from "../../support/until.ts";

const NOBODY = `dlg_0_${"0".repeat(26)}`;
const IDS = [
  ...["1", "0", "-1", "1.5", "1.0", "1e2", "1E400", "-0", "9007199254740993", "1732523456789012345"],
  ...['"a"', '"\\u0061"', '"9007199254740993"', '"a\\/b😀"', '"errand-id:1"'],
];
const BIG = "9007199254740993";

async function setup() {
  const broker = await startBroker();
  const agent = await as(broker.url, "agent:scout");
  await agent.agent("scout");
  const post = async (path: string, body: string, headers: Record<string, string> = {}) => {
    const all = { "content-type": "application/json", authorization: `Bearer ${OPERATOR}`, ...headers };
    const response = await fetch(`${broker.url}${path}`, { method: "POST", headers: all, body });
    return { status: response.status, text: await response.text() };
  };
  return { ...broker, agent, post };
}

const MODERN_META = JSON.stringify({
  "io.modelcontextprotocol/protocolVersion": MODERN,
  "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
});
const modernHeaders = (name: string) => ({
  "mcp-protocol-version": MODERN,
  "mcp-method": "tools/call",
  "mcp-name": name,
});
const mcpCall = (id: string, args: string) =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"_meta":${MODERN_META},"name":"delegate_task_async","arguments":${args}}}`;

describe("the id of a JSON-RPC request comes back byte for byte", () => {
  test("in A2A 1.0 and 0.3, in answers, errors and streams", async () => {
    const { post } = await setup();
    const message = '{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}';
    const v03 = '{"kind":"message","messageId":"m3","role":"user","parts":[{"kind":"text","text":"x"}]}';
    for (const id of [...IDS, "null"]) {
      for (const [version, method, params] of [
        ["1.0", "SendMessage", `{"message":${message},"configuration":{"returnImmediately":true}}`],
        ["1.0", "GetTask", `{"id":"${NOBODY}"}`],
        ["1.0", "GetTask", `{"id":"${NOBODY}","historyLength":${BIG}}`],
        ["0.3", "message/send", `{"message":${v03},"configuration":{"blocking":false}}`],
        ["0.3", "tasks/get", `{"id":"${NOBODY}"}`],
        ["0.3", "nothing", "{}"],
      ]) {
        const body = `{"method":"${method}","params":${params},"id": ${id} ,"jsonrpc":"2.0"}`;
        const { status, text } = await post("/a2a/scout/rpc", body, { "a2a-version": `${version}` });
        expect([status, text.includes(`"id":${id},`) || text.endsWith(`"id":${id}}`)], text).toEqual([
          200,
          true,
        ]);
      }
    }
  });

  test("in the events of a stream", async () => {
    const { url, agent } = await setup();
    const body = `{"jsonrpc":"2.0","id":${BIG},"method":"SendStreamingMessage","params":{"message":{"messageId":"s","role":"ROLE_USER","parts":[{"text":"x"}]}}}`;
    const headers = {
      "content-type": "application/json",
      "a2a-version": "1.0",
      authorization: `Bearer ${OPERATOR}`,
    };
    const response = await fetch(`${url}/a2a/scout/rpc`, { method: "POST", headers, body });
    const { leases } = (await agent.lease("scout", { wait_seconds: 10 })).body;
    await agent.reply(leases[0].lease_id, { text: "done" });
    const events = [...(await response.text()).matchAll(/^data: (.+)$/gm)].map(([, data = ""]) => data);
    expect(events.length).toBeGreaterThan(1);
    for (const event of events) expect(event).toContain(`"id":${BIG}`);
  });

  test("at /mcp in both eras, in answers, errors and streams", async () => {
    const { url, post } = await setup();
    const session = { ...(await openSession(url, OPERATOR)), "mcp-protocol-version": LEGACY };
    const both = { accept: "application/json, text/event-stream" };
    for (const id of IDS) {
      for (const [body, headers] of [
        [mcpCall(id, '{"agent":"scout","task":"x"}'), modernHeaders("delegate_task_async")],
        [mcpCall(id, '{"agent":"scout"}'), modernHeaders("delegate_task_async")],
        [
          mcpCall(id, `{"agent":"scout","task":"x","metadata":{"id":${BIG}}}`),
          modernHeaders("delegate_task_async"),
        ],
        [`{"jsonrpc":"2.0","id":${id},"method":"tools/list"}`, session],
        [
          `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"broker_health","arguments":{}}}`,
          session,
        ],
        [
          `{"jsonrpc":"2.0","id":${id},"method":"tools/list"}`,
          { ...session, "mcp-session-id": "mcp_unknown" },
        ],
      ] as const) {
        const { text } = await post("/mcp", body, { ...both, ...headers });
        expect(
          text.includes(`"id":${id},`) ||
            new RegExp(`"id":${id.replace(/[\\^$.*+?|/]/g, "\\$&")}}\\s*$`).test(text),
          `${body}\n${text}`,
        ).toBe(true);
      }
    }
  });

  test("through errand mcp, also when the broker does not answer", async () => {
    const { url } = await setup();
    for (const target of [url, "http://127.0.0.1:9"]) {
      const input = new PassThrough();
      const answers: string[] = [];
      const bridge = new Bridge({
        target: async () => ({ url: target, token: OPERATOR }),
        send: async (line) => void answers.push(line),
        say: () => {},
      });
      const running = bridge.run(input, new AbortController().signal);
      for (const id of IDS) input.write(`${mcpCall(id, '{"agent":"scout","task":"x"}')}\n`);
      input.write(`{"jsonrpc":"2.0","id":null,"method":"tools/list"}\n`);
      await until(() => answers.length > IDS.length);
      input.end();
      await running;
      for (const id of [...IDS, "null"]) {
        const answered = answers.some((line) => line.includes(`"id":${id},`) || line.endsWith(`"id":${id}}`));
        expect(answered, `${id}\n${answers.join("\n")}`).toBe(true);
      }
    }
  });
});

test("every door refuses a number that would lose digits, names it, and stores nothing", async () => {
  const { url, agent, post } = await setup();
  const alice = await as(url, "caller:alice");
  const a2a = (value: string) =>
    `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":${value}}]}}`;
  const rpc = (method: string, params: string) =>
    `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`;
  const refusals: [string, string, string, Record<string, string>?][] = [
    ["/v1/delegations", `{"target":"scout","task":"x","metadata":{"a":[${BIG}]}}`, "metadata.a.0"],
    [
      "/v1/delegations",
      `{"target":"scout","message":{"parts":[{"data":{"n":1e400}}]}}`,
      "message.parts.0.data.n",
    ],
    ["/v1/agents/scout/leases", '{"wait_seconds":0.1000000000000000055511}', "wait_seconds"],
    ["/a2a/scout/rpc", rpc("SendMessage", a2a(BIG)), "params.message.parts.0.data", { "a2a-version": "1.0" }],
    ["/a2a/scout/rest/message:send", a2a(BIG), "message.parts.0.data", { "a2a-version": "1.0" }],
    ["/a2a/scout/rest/v1/message:send", `{"message":{"a":${BIG}}}`, "message.a"],
    ["/ag-ui/scout", `{"threadId":"t","runId":"r","state":{"n":${BIG}}}`, "state.n"],
    [
      "/mcp",
      mcpCall("1", `{"agent":"scout","task":"x","metadata":{"n":${BIG}}}`),
      "params.arguments.metadata.n",
      modernHeaders("delegate_task_async"),
    ],
  ];
  for (const [path, body, where, headers] of refusals) {
    const { text } = await post(path, body, headers);
    expect(text, path).toContain("inexact_number");
    expect(text, path).toContain(`${where} is a number that loses digits; send it as a text`);
  }
  expect((await alice.call("GET", "/v1/delegations")).body.delegations).toEqual([]);

  await alice.delegate("scout");
  const [{ lease_id: id, delegation }] = (await agent.lease("scout")).body.leases;
  for (const [verb, body, where] of [
    ["heartbeat", `{"progress":{"message":"x"},"checkpoint":{"n":${BIG}}}`, "checkpoint.n"],
    ["artifacts", `{"artifact":{"artifactId":"a","parts":[{"data":${BIG}}]}}`, "artifact.parts.0.data"],
    ["interrupt", `{"text":"?","action":{"name":"pay","arguments":{"to":${BIG}}}}`, "action.arguments.to"],
    [
      "interrupt",
      `{"text":"?","schema":{"type":"object","properties":{"n":{"type":"number","maximum":1e400}}}}`,
      "schema.properties.n.maximum",
    ],
    ["reply", `{"state":"completed","message":{"parts":[{"data":{"n":${BIG}}}]}}`, "message.parts.0.data.n"],
  ]) {
    const answer = await agent.call("POST", `/v1/leases/${id}/${verb}`, body);
    expect([answer.status, answer.body.code, answer.body.details?.issues?.[0]?.path], verb).toEqual([
      400,
      "inexact_number",
      where,
    ]);
  }
  // The lease still holds, so the agent can send it again.
  const kept =
    '{"state":"completed","message":{"parts":[{"data":{"n":[9007199254740991,0.1234567890123456,1e300,-1.5,100]}}]}}';
  expect((await agent.call("POST", `/v1/leases/${id}/reply`, kept)).status).toBe(200);
  const read = await fetch(`${url}/v1/delegations/${delegation.id}`, {
    headers: { authorization: `Bearer ${OPERATOR}` },
  });
  expect(await read.text()).toContain('"n":[9007199254740991,0.1234567890123456,1e+300,-1.5,100]');
});
