/** Texts that make careless parsers slow, sent to every API: each gets a response, with CPU time linear in its length. */
import { Agent as Connections, request } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { OPERATOR } from "../../support/broker.ts";
import { leaseOf, startA2aBroker } from "../a2a/support.ts";

const LENGTH = 100_000;
const run = (unit: string, end = "!") => unit.repeat(Math.ceil(LENGTH / unit.length)) + end;
const SHAPES = [
  ...["a", " ", ",", ".", "/", "-", "0", '"', "\\", "=", ":", "\t", "\n", "*", "%", "{", "["].map((unit) =>
    run(unit),
  ),
  ...[
    "AAAA",
    "QQ==",
    "a,",
    "a.b",
    "00-",
    "; q=0.1,",
    "wait=1,",
    "dlg_0_",
    "1-1.",
    "é",
    "😀",
    "\\u",
    "a=b;",
  ].map((unit) => run(unit)),
];
/** For fields without a regular expression: one text of each kind. */
const SOME = [...["a", " ", ",", ".", "/", "-", '"', "\\"].map((unit) => run(unit)), run("AAAA")];
/** Node accepts 16 KB of headers, without line breaks. */
const HEADER_SHAPES = [...SOME.slice(1, 7), run("0"), run("; q=0.1,")].map((text) =>
  text
    .replaceAll(/[^\t\x20-\x7e]/g, "e")
    .slice(0, 7_000)
    .concat("!"),
);
const HEADERS = [
  ...[
    "authorization",
    "prefer",
    "last-event-id",
    "traceparent",
    "if-match",
    "if-none-match",
    "accept",
    "host",
    "origin",
  ],
  ...[
    "idempotency-key",
    "content-type",
    "a2a-version",
    "a2a-extensions",
    "mcp-session-id",
    "mcp-protocol-version",
  ],
  ...["mcp-method", "mcp-name"],
];
/** CPU time of this process per request, on average: quadratic work on 100 KB would take seconds. */
const MOST_CPU_MS = 150;
const ONCE_MOST_CPU_MS = 2_000;
const MOST_LIST_MS = 1_200;

async function setup() {
  const broker = await startA2aBroker();
  const { id } = (await broker.caller.delegate("scout")).body;
  const { lease } = await leaseOf(broker.agent);
  const connections = new Connections({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => connections.destroy());
  const { hostname, port } = new URL(broker.url);
  const send = (
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: string,
  ): Promise<number> =>
    new Promise((resolve, reject) => {
      const asked = request(
        {
          ...{ hostname, port, method, path, agent: connections },
          headers: { authorization: `Bearer ${OPERATOR}`, "content-type": "application/json", ...headers },
        },
        (answer) => {
          answer.resume();
          answer.on("end", () => resolve(answer.statusCode ?? 0));
        },
      );
      asked.on("error", reject);
      asked.end(body);
    });
  return { ...broker, id: String(id), lease, send };
}

/** Sends all in order, and checks the CPU time of each. */
async function measured(
  asks: readonly (readonly [what: string, ask: () => Promise<number>])[],
): Promise<void> {
  const whole = process.cpuUsage();
  for (const [what, ask] of asks) {
    const startedAt = process.cpuUsage();
    const status = await ask();
    expect([what.slice(0, 80), status, status < 500]).toEqual([what.slice(0, 80), status, true]);
    const ms = process.cpuUsage(startedAt).user / 1_000;
    expect([what.slice(0, 80), ms < ONCE_MOST_CPU_MS]).toEqual([what.slice(0, 80), true]);
  }
  expect(process.cpuUsage(whole).user / 1_000 / asks.length).toBeLessThan(MOST_CPU_MS);
}

test("in bodies", { timeout: 120_000 }, async () => {
  const { send, id, lease, url } = await setup();
  const v1 = { "a2a-version": "1.0" };
  const rpc = (method: string, params: unknown) => ({ jsonrpc: "2.0", id: 1, method, params });
  const bodies: (text: string) => [string, Record<string, string>, unknown][] = (text) => [
    ["/v1/delegations", {}, { target: text, task: text, context_id: text, deadline: text, parent_id: text }],
    ["/v1/delegations", {}, { target: "scout", task: text, callback: { url: text, secret: text } }],
    ["/v1/tokens", {}, { principal: text }],
    [`/v1/delegations/${id}/messages`, {}, { text }],
    [`/v1/delegations/${id}/answer`, {}, { interrupt_id: text, text }],
    ["/v1/agents/scout/leases", {}, { worker_id: text }],
    [`/v1/leases/${lease}/heartbeat`, {}, { seen: text, progress: { message: text, current_step: text } }],
    [`/v1/leases/${lease}/reply`, {}, { state: "failed", error: { code: text, message: text } }],
    ["/v1/agents/scout/replies", {}, rpc(text, { message: text })],
    [
      "/v1/agents/scout/replies",
      {},
      { kind: "message", messageId: text, role: "agent", parts: [{ kind: "file", file: { bytes: text } }] },
    ],
    [
      "/a2a/scout/rpc",
      v1,
      rpc("SendMessage", { message: { messageId: "m", role: "ROLE_USER", parts: [{ raw: text }] } }),
    ],
    ["/a2a/scout/rpc", v1, rpc(text, { id: text })],
    ["/a2a/scout/rpc", v1, rpc("ListTasks", { pageToken: text, statusTimestampAfter: text })],
    [
      "/a2a/scout/rpc",
      { "a2a-version": "0.3" },
      rpc("message/send", {
        message: { messageId: "m", role: "user", parts: [{ kind: "file", file: { bytes: text } }] },
      }),
    ],
    [
      "/a2a/scout/rest/message:send",
      v1,
      { message: { messageId: text, role: "ROLE_USER", parts: [{ url: text }] } },
    ],
    [
      "/mcp",
      { accept: "application/json, text/event-stream" },
      rpc("tools/call", { name: text, arguments: { agent: text, task: text } }),
    ],
  ];
  await measured(
    SHAPES.flatMap((text) => [
      ...bodies(text)
        .filter(([path]) => SOME.includes(text) || path.endsWith("rpc"))
        .map(
          ([path, headers, body]) =>
            [`${path} ${text}`, () => send("POST", path, headers, JSON.stringify(body))] as const,
        ),
    ]),
  );
  await measured(
    SOME.flatMap((text) => [
      [`raw ${text}`, () => send("POST", "/v1/delegations", {}, text)] as const,
      [
        `cut ${text}`,
        () => send("POST", "/v1/delegations", {}, `{"target":"scout","task":"${text}`),
      ] as const,
    ]),
  );
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
});

test("in headers, paths and queries", { timeout: 120_000 }, async () => {
  const { send, id } = await setup();
  const paths = (text: string) => {
    const safe = encodeURIComponent(text).slice(0, 7_000);
    return [
      `/v1/delegations/${safe}`,
      `/v1/agents/${safe}`,
      `/${safe}`,
      `/a2a/scout/rest/tasks/${safe}:cancel`,
      `/a2a/scout/rest/${text.replaceAll(/[^/.\w-]/g, "a")}`,
      `/v1/delegations?after=${safe}&context_id=${safe}&state=${safe}`,
      `/v1/delegations/${id}/events?after=${safe}`,
      `/v1/results?after=${safe}&wait_seconds=${safe}`,
    ];
  };
  await measured(
    HEADER_SHAPES.flatMap((text) => [
      ...HEADERS.map(
        (name) =>
          [
            `${name}: ${text}`,
            () => send("POST", "/mcp", { [name]: name === "authorization" ? `Bearer ${text}` : text }, "{}"),
          ] as const,
      ),
      [
        `events ${text}`,
        () =>
          send("GET", `/v1/delegations/${id}/events`, { accept: "application/json", "last-event-id": text }),
      ] as const,
      [
        `prefer ${text}`,
        () => send("POST", "/v1/delegations", { prefer: text }, '{"target":"nobody","task":"x"}'),
      ] as const,
      ...paths(text).map((path) => [path, () => send("GET", path, { accept: "application/json" })] as const),
    ]),
  );
});

test("in lists and names: a megabyte of wrong ones is refused by its length, with a short answer", async () => {
  const { url } = await setup();
  const many = (count: number, one: (index: number) => string) =>
    Array.from({ length: count }, (_, index) => one(index)).join(",");
  const parts = `[${many(300_000, () => "{}")}]`;
  const rpc = (method: string, message: string) =>
    `{"jsonrpc":"2.0","id":1,"method":"${method}","params":{"message":${message}}}`;
  const bodies: [string, string, string][] = [
    ["/v1/delegations", "1.0", `{"target":"scout","message":{"parts":${parts}}}`],
    ["/v1/delegations", "1.0", `{"target":"scout","task":"x",${many(90_000, (index) => `"k${index}":1`)}}`],
    ["/a2a/scout/rpc", "1.0", rpc("SendMessage", `{"messageId":"m","role":"ROLE_USER","parts":${parts}}`)],
    ["/a2a/scout/rpc", "0.3", rpc("message/send", `{"messageId":"m","role":"user","parts":${parts}}`)],
  ];
  for (const [path, version, body] of bodies) {
    const startedAt = process.cpuUsage();
    const answer = await fetch(`${url}${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${OPERATOR}`,
        "content-type": "application/json",
        "a2a-version": version,
      },
      body,
    });
    const text = await answer.text();
    expect(text).toMatch(/invalid_request|-32602/);
    expect(text.length).toBeLessThan(20_000);
    expect(process.cpuUsage(startedAt).user / 1_000).toBeLessThan(MOST_LIST_MS);
  }
});
