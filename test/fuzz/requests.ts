/** Valid requests to every API, made from the schemas that it validates with. mutations.ts spoils them. */
import * as fc from "fast-check";
import { z } from "zod";
import { PARAMS } from "../../src/doors/a2a/params.ts";
import { toSnake } from "../../src/doors/a2a/protojson.ts";
import { PARAMS_V03 } from "../../src/doors/a2a/v03/params.ts";
import { ROUTES } from "../../src/doors/http/app.ts";
import type { Route } from "../../src/doors/http/route.ts";
import { TOOLS } from "../../src/doors/mcp/tools/tools.ts";
import { artifactSchema, messageSchema } from "../../src/schema/a2a.ts";
import { A2A_STATES } from "../../src/schema/a2a-task.ts";
import { agUiMessageSchema, agUiPropsSchema } from "../../src/schema/ag-ui-input.ts";
import { a2aSettingsSchema } from "../../src/schema/delegate-settings.ts";
import { MODERN } from "../support/mcp.ts";
import { toValue, valuesOf } from "./values.ts";

export type ApiName = "rest" | "rpc" | "a2a-rest" | "mcp" | "ag-ui";

export interface Ask {
  readonly api: ApiName;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

const recordSchema = z.record(z.string(), z.unknown());
const recordOf = (arbitrary: fc.Arbitrary<unknown>) =>
  arbitrary.map((value) => recordSchema.parse(value ?? {}));
const nothing = fc.constant({});

const asQuery = (query: Readonly<Record<string, unknown>>): string => {
  const text = Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value).toWellFormed())}`)
    .join("&");
  return text === "" ? "" : `?${text}`;
};

const inPath = (value: unknown): string =>
  // Placeholders stay as they are.
  encodeURIComponent(String(value).toWellFormed()).replace(/^%7B(\w+)%7D$/, "{$1}");

function restAsk({ method, path, schemas: { params, query, body } }: Route): fc.Arbitrary<Ask> {
  return fc
    .record({
      params: params ? recordOf(valuesOf(params)) : nothing,
      query: query ? recordOf(valuesOf(query)) : nothing,
      body: body ? valuesOf(body) : fc.constant(undefined),
    })
    .map((made) => ({
      api: "rest" as const,
      method,
      path:
        path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
          inPath(z.record(z.string(), z.unknown()).parse(made.params)[name]),
        ) + asQuery(made.query),
      headers: {},
      body: made.body,
    }));
}

/** A2A's params as they are, in snake_case, or with both names of every member, which must be refused. */
const a2aParams = (schema: z.ZodType): fc.Arbitrary<unknown> =>
  fc
    .tuple(valuesOf(schema), fc.constantFrom("camel", "camel", "snake", "both"))
    .map(([params, spelling]) => (spelling === "camel" ? params : respelled(params, spelling === "both")));

function respelled(value: unknown, both: boolean): unknown {
  if (Array.isArray(value)) return value.map((one) => respelled(one, both));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, one]) => {
      const inner = name === "metadata" || name === "data" ? one : respelled(one, both);
      return [...(both ? [[name, inner]] : []), [toSnake(name), inner]];
    }),
  );
}

const rpcAsk = (version: string, method: string, schema: z.ZodType): fc.Arbitrary<Ask> =>
  a2aParams(schema).map((params) => ({
    api: "rpc" as const,
    method: "POST",
    path: "/a2a/scout/rpc",
    headers: { "a2a-version": version },
    body: { jsonrpc: "2.0", id: 1, method, params },
  }));

/** Verb, path and the members of the body. */
const A2A_REST: readonly (readonly [version: string, verb: string, path: string, body: z.ZodType | null])[] =
  [
    ["1.0", "POST", "message:send", PARAMS.SendMessage],
    ["1.0", "POST", "message:stream", PARAMS.SendStreamingMessage],
    ["1.0", "GET", "tasks/{id}", null],
    ["1.0", "GET", "tasks?pageSize=5", null],
    ["1.0", "GET", "tasks?page_size=5&status=2&context_id=a", null],
    ["1.0", "GET", "tasks?page_size=5&pageSize=5", null],
    ["1.0", "POST", "tasks/{id}:cancel", PARAMS.CancelTask],
    ["1.0", "POST", "tasks/{id}/pushNotificationConfigs", PARAMS.CreateTaskPushNotificationConfig],
    ["1.0", "GET", "tasks/{id}/pushNotificationConfigs", null],
    ["0.3", "POST", "v1/message:send", PARAMS_V03["message/send"]],
    ["0.3", "POST", "v1/message:stream", PARAMS_V03["message/stream"]],
    ["0.3", "GET", "v1/tasks/{id}", null],
    ["0.3", "POST", "v1/tasks/{id}:cancel", PARAMS_V03["tasks/cancel"]],
    ["0.3", "POST", "v1/tasks/{id}/pushNotificationConfigs", PARAMS_V03["tasks/pushNotificationConfig/set"]],
  ];

const a2aRestAsks = A2A_REST.map(([version, method, path, body]) =>
  (body ? a2aParams(body) : fc.constant(undefined)).map((made) => ({
    api: "a2a-rest" as const,
    method,
    path: `/a2a/scout/rest/${path}`,
    headers: { "a2a-version": version },
    body: made,
  })),
);

/** A send with the broker's settings in its metadata. */
const settingsAsk: fc.Arbitrary<Ask> = fc
  .tuple(recordOf(valuesOf(PARAMS.SendMessage)), valuesOf(a2aSettingsSchema))
  .map(([params, errand]) => ({
    api: "a2a-rest" as const,
    method: "POST",
    path: "/a2a/scout/rest/message:send",
    headers: { "a2a-version": "1.0" },
    body: { ...params, metadata: { errand } },
  }));

/** The cards, in the form of each version and combined. */
const cardAsks = ["cards/1.0.json", "cards/0.3.json", ".well-known/agent-card.json"].map((path) =>
  fc.constant({ api: "a2a-rest" as const, method: "GET", path: `/a2a/scout/${path}`, headers: {} }),
);

const META = {
  "io.modelcontextprotocol/protocolVersion": MODERN,
  "io.modelcontextprotocol/clientInfo": { name: "fuzz", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

const mcpAsk = (era: "modern" | "legacy", method: string, params: fc.Arbitrary<unknown>): fc.Arbitrary<Ask> =>
  recordOf(params).map((made) => ({
    api: "mcp" as const,
    method: "POST",
    path: "/mcp",
    headers: {
      accept: "application/json, text/event-stream",
      ...(era === "modern"
        ? {
            "mcp-protocol-version": MODERN,
            "mcp-method": method,
            ...(typeof made.name === "string" && { "mcp-name": made.name }),
          }
        : { "mcp-protocol-version": "2025-11-25", "mcp-session-id": "{session}" }),
    },
    body: { jsonrpc: "2.0", id: 1, method, params: era === "modern" ? { ...made, _meta: META } : made },
  }));

const mcpAsks = (["modern", "legacy"] as const).flatMap((era) => [
  ...TOOLS.map(({ name, inputSchema }) =>
    mcpAsk(
      era,
      "tools/call",
      toValue(inputSchema).map((made) => ({ name, arguments: made })),
    ),
  ),
  mcpAsk(era, "tools/list", nothing),
  mcpAsk(era, "tasks/get", fc.constant({ taskId: "{id}" })),
]);

const replyAsk: fc.Arbitrary<Ask> = fc
  .record({
    state: fc.constantFrom(...Object.keys(A2A_STATES)),
    message: valuesOf(messageSchema),
    artifacts: fc.array(valuesOf(artifactSchema), { maxLength: 2 }),
  })
  .map(({ state, message, artifacts }) => ({
    api: "rest" as const,
    method: "POST",
    path: "/v1/agents/scout/replies",
    headers: {},
    body: {
      jsonrpc: "2.0",
      id: "{lease}",
      result: { task: { id: "t", status: { state, message }, artifacts } },
    },
  }));

/** Runs with a message, an answer, or what the schema allows; threads and messages repeat, so that runs attach. */
const few = fc.constantFrom("a", "b");
const runAsk: fc.Arbitrary<Ask> = fc
  .record(
    {
      threadId: few,
      runId: fc.constant("r"),
      messages: fc.oneof(
        fc
          .record({ id: few, text: fc.string({ maxLength: 9 }) })
          .map(({ id, text }) => [{ id, role: "user", content: text }]),
        fc.array(valuesOf(agUiMessageSchema), { maxLength: 3 }),
      ),
      forwardedProps: fc
        .oneof(fc.constantFrom({}, { attach: true }, { cancel: true }), valuesOf(agUiPropsSchema))
        .map((errand) => ({ errand })),
      resume: fc
        .constantFrom("resolved", "cancelled")
        .chain((status) =>
          fc.jsonValue({ maxDepth: 1 }).map((payload) => [{ interruptId: "{interrupt}", status, payload }]),
        ),
      state: fc.jsonValue({ maxDepth: 2 }),
    },
    { requiredKeys: ["threadId", "runId", "messages"] },
  )
  .map((body) => ({ api: "ag-ui" as const, method: "POST", path: "/ag-ui/scout", headers: {}, body }));

const group = (asks: readonly fc.Arbitrary<Ask>[]) => fc.oneof(...asks);

/** Each API equally often. */
export const asks: fc.Arbitrary<Ask> = fc.oneof(
  { weight: 4, arbitrary: group(ROUTES.map(restAsk)) },
  { weight: 1, arbitrary: replyAsk },
  {
    weight: 1,
    arbitrary: group(Object.entries(PARAMS).map(([name, schema]) => rpcAsk("1.0", name, schema))),
  },
  {
    weight: 1,
    arbitrary: group(Object.entries(PARAMS_V03).map(([name, schema]) => rpcAsk("0.3", name, schema))),
  },
  { weight: 2, arbitrary: group([...a2aRestAsks, settingsAsk, ...cardAsks]) },
  { weight: 2, arbitrary: group(mcpAsks) },
  { weight: 1, arbitrary: runAsk },
);
