/** Bodies with many values, for each API: the shapes that cost most to check. */

export interface Shape {
  readonly name: string;
  readonly method?: "POST" | "PUT" | "PATCH";
  /** `{agent}` is an agent of the token. */
  readonly path: string;
  readonly as: "caller" | "agent" | "operator";
  readonly headers?: Readonly<Record<string, string>>;
  /** A body with about this many values in the place in question. */
  readonly body: (values: number) => unknown;
}

const members = (count: number): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [n.toString(36), {}]));
const numbers = (count: number): number[] => Array.from({ length: count }, () => 1);

const LEGACY = "2025-11-25";
const MODERN = "2026-07-28";
const mcp = (name: string, version: string, method: string, params: (n: number) => unknown): Shape => ({
  name: `MCP ${name}`,
  path: "/mcp",
  as: "caller",
  headers: {
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": version,
    "mcp-method": method,
    ...(method === "tools/call" && { "mcp-name": "list_tasks" }),
  },
  body: (n) => ({ jsonrpc: "2.0", id: 1, method, params: params(n) }),
});
const meta = (more: object = {}, capabilities: object = {}) => ({
  "io.modelcontextprotocol/protocolVersion": MODERN,
  "io.modelcontextprotocol/clientInfo": { name: "x", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": capabilities,
  ...more,
});
const a2a = (name: string, version: string, method: string, params: (n: number) => unknown): Shape => ({
  name: `A2A ${version} ${name}`,
  path: "/a2a/{agent}/rpc",
  as: "caller",
  headers: { "a2a-version": version },
  body: (n) => ({ jsonrpc: "2.0", id: 1, method, params: params(n) }),
});
const message = (more: object) => ({ messageId: "m", role: "ROLE_USER", parts: [{ text: "x" }], ...more });
const message03 = (more: object) => ({
  kind: "message",
  messageId: "m",
  role: "user",
  parts: [{ kind: "text", text: "x" }],
  ...more,
});

const rest = (name: string, path: string, as: Shape["as"], body: Shape["body"], more = {}): Shape => ({
  name,
  path,
  as,
  body,
  ...more,
});
const agui = (name: string, body: (n: number) => object): Shape =>
  rest(`AG-UI ${name}`, "/ag-ui/{agent}", "caller", (n) => ({
    threadId: "t",
    runId: "r",
    messages: [],
    tools: [],
    context: [],
    forwardedProps: {},
    state: {},
    ...body(n),
  }));

export const SHAPES: readonly Shape[] = [
  rest("delegate: metadata", "/v1/delegations", "caller", (n) => ({
    target: "no-agent",
    task: "x",
    metadata: members(n),
  })),
  rest("delegate: data part", "/v1/delegations", "caller", (n) => ({
    target: "no-agent",
    message: { parts: [{ data: members(n) }] },
  })),
  rest("delegate: numbers", "/v1/delegations", "caller", (n) => ({
    target: "no-agent",
    message: { parts: [{ data: numbers(4 * n) }] },
  })),
  rest("delegate: parts", "/v1/delegations", "caller", (n) => ({
    target: "no-agent",
    message: { parts: Array.from({ length: n }, () => ({ text: "" })) },
  })),
  rest("delegate: unknown members", "/v1/delegations", "caller", (n) => ({
    target: "no-agent",
    task: "x",
    ...members(n),
  })),
  rest(
    "delegate: Idempotency-Key",
    "/v1/delegations",
    "caller",
    (n) => ({ target: "{agent}", message: { parts: [{ data: members(n) }] } }),
    { headers: { "idempotency-key": "k" } },
  ),
  rest("batch: bad items", "/v1/delegations/batch", "caller", (n) => ({
    delegations: Array.from({ length: 100 }, () => members(n / 100)),
  })),
  rest("batch: metadata", "/v1/delegations/batch", "caller", (n) => ({
    delegations: Array.from({ length: 100 }, () => ({
      target: "no-agent",
      task: "x",
      message: { parts: [{ text: "x", metadata: members(n / 100) }] },
    })),
  })),
  rest("batch: numbers", "/v1/delegations/batch", "caller", (n) => ({ delegations: numbers(n) })),
  rest("agent: settings", "/v1/agents/{agent}", "operator", (n) => ({ skills: numbers(n) }), {
    method: "PUT",
  }),
  rest("replies: members", "/v1/agents/{agent}/replies", "agent", members),
  rest("replies: metadata", "/v1/agents/{agent}/replies", "agent", (n) => ({
    role: "agent",
    messageId: "m",
    parts: [{ text: "x" }],
    metadata: members(n),
  })),
  rest("replies: history", "/v1/agents/{agent}/replies", "agent", (n) => ({
    id: "x",
    status: { state: "completed" },
    history: Array.from({ length: n / 4 }, () => ({ role: "agent", parts: [{ text: "" }] })),
  })),
  a2a("metadata", "1.0", "SendMessage", (n) => ({ message: message({}), metadata: members(n) })),
  a2a("message metadata", "1.0", "SendMessage", (n) => ({ message: message({ metadata: members(n) }) })),
  a2a("data", "1.0", "SendMessage", (n) => ({ message: message({ parts: [{ data: members(n) }] }) })),
  a2a("unknown members", "1.0", "SendMessage", (n) => ({ message: message({}), ...members(n) })),
  a2a("extensions", "1.0", "SendMessage", (n) => ({ message: message({ extensions: numbers(n) }) })),
  a2a("parts", "1.0", "SendMessage", (n) => ({
    message: message({ parts: Array.from({ length: n / 2 }, () => ({ text: "" })) }),
  })),
  a2a("data", "0.3", "message/send", (n) => ({
    message: message03({ parts: [{ kind: "data", data: members(n) }] }),
  })),
  a2a("metadata", "0.3", "message/send", (n) => ({ message: message03({}), metadata: members(n) })),
  a2a("unknown members", "0.3", "message/send", (n) => ({ message: message03(members(n)) })),
  agui("state", (n) => ({ state: members(n) })),
  agui("forwardedProps", (n) => ({ forwardedProps: members(n) })),
  agui("messages", (n) => ({
    messages: Array.from({ length: n / 4 }, () => ({ id: "m", role: "user", content: "" })),
  })),
  agui("content", (n) => ({
    messages: [
      {
        id: "m",
        role: "user",
        content: Array.from({ length: n / 2 }, () => ({ type: "text", text: "" })),
      },
    ],
  })),
  mcp("initialize: capabilities", LEGACY, "initialize", (n) => ({
    protocolVersion: LEGACY,
    capabilities: { experimental: members(n) },
    clientInfo: { name: "x", version: "1" },
  })),
  mcp("tools/call: arguments", MODERN, "tools/call", (n) => ({
    name: "list_tasks",
    arguments: members(n),
    _meta: meta(),
  })),
  mcp("tools/call: numbers", MODERN, "tools/call", (n) => ({
    name: "list_tasks",
    arguments: { x: numbers(4 * n) },
    _meta: meta(),
  })),
  mcp("tools/call: _meta", MODERN, "tools/call", (n) => ({
    name: "list_tasks",
    arguments: {},
    _meta: meta(members(n)),
  })),
  mcp("tools/call: capabilities", MODERN, "tools/call", (n) => ({
    name: "list_tasks",
    arguments: {},
    _meta: meta({}, { extensions: members(n) }),
  })),
  mcp("tools/list: capabilities", MODERN, "tools/list", (n) => ({
    _meta: meta({}, { extensions: members(n) }),
  })),
  mcp("unknown method", LEGACY, "x/y", members),
  {
    ...mcp("batch of notifications", LEGACY, "", () => ({})),
    body: (n) => Array.from({ length: n / 3 }, () => ({ jsonrpc: "2.0", method: "notifications/x" })),
  },
];
