/**
 * Whatever is wrong with a request, the answer says it in our words. Every schema of every API gets values that it refuses,
 * at every depth; no answer has a phrase of zod, and all of them together have the words of each kind of mistake.
 */
import { expect, test } from "vitest";
import { z } from "zod";
import { PARAMS } from "../../src/doors/a2a/params.ts";
import { PARAMS_V03 } from "../../src/doors/a2a/v03/params.ts";
import { ROUTES } from "../../src/doors/http/app.ts";
import { TOOLS } from "../../src/doors/mcp/tools/tools.ts";
import { runAgentInputSchema } from "../../src/schema/ag-ui-input.ts";
import { customAsObject } from "../../src/schema/custom-as-object.ts";
import { OPERATOR, request, startBroker } from "../support/broker.ts";
import { openSession, postMcp, requestModern } from "../support/mcp.ts";
import { zodPhraseIn } from "../support/zod-phrases.ts";

const schemaSchema = z.looseObject({
  properties: z.record(z.string(), z.unknown()).optional(),
  items: z.unknown().optional(),
  anyOf: z.array(z.unknown()).optional(),
  oneOf: z.array(z.unknown()).optional(),
});

const WRONG = [null, -1.5, "", "x".repeat(66_000), [7, 7], { extra: 1 }, true];
/** Enough for a value without members. */
const FEW = [undefined, null, -1.5, "", [7]];

/**
 * A value of the schema's form down to `depth`, with wrong ones below it: in each turn another for each member. Of
 * alternatives, each turn chooses another.
 */
function spoilt(given: unknown, depth: number, turn: number): unknown {
  const schema = schemaSchema.safeParse(given).data ?? {};
  const options = schema.anyOf ?? schema.oneOf;
  if (depth > 0 && options) return spoilt(options[turn % options.length], depth, turn);
  if (depth > 0 && schema.items !== undefined) return [spoilt(schema.items, depth - 1, turn)];
  if (depth === 0 || !schema.properties) return WRONG[turn % WRONG.length];
  const members = Object.entries(schema.properties).map(([name, one], at) => [
    name,
    spoilt(one, depth - 1, turn + at),
  ]);
  return Object.fromEntries(members);
}

const jsonSchemaOf = (schema: z.ZodType) =>
  z.toJSONSchema(schema, { io: "input", unrepresentable: customAsObject });

const wrongValues = (schema: unknown): unknown[] => [
  { tsak: 1 },
  [7],
  ...[1, 4, 4, 1, 4, 1, 4].map((depth, turn) => spoilt(schema, depth, turn)),
];

async function setup() {
  const { url } = await startBroker();
  const said = new Set<string>();
  let refused = 0;
  const note = (what: string, answer: unknown): void => {
    const text = JSON.stringify(answer);
    expect(zodPhraseIn(text), `${what}: ${text.slice(0, 400)}`).toBeUndefined();
    if (/"(?:issues|fieldViolations)\\?":/.test(text)) refused += 1;
    for (const [, reason = ""] of text.matchAll(/"(?:reason|description)\\?":\\?"((?:[^"\\]|\\\\.)*)/g))
      said.add(reason);
  };
  return { url, said, note, refused: () => refused };
}

/** The words that must have been seen, so that the walk cannot pass by without a refusal. */
const KINDS = [
  /^missing$/,
  /^must be a string, not null$/,
  /^must be a list, not /,
  /^must be true or false, not /,
  /^at most \d+ characters$/,
  /^at least 1 character$/,
  /^unknown field/,
  /^must be one of /,
];

function expectKinds(said: ReadonlySet<string>, kinds = KINDS): void {
  for (const kind of kinds)
    expect(
      [...said].some((one) => kind.test(one)),
      String(kind),
    ).toBe(true);
}

const IDS: Readonly<Record<string, string>> = {
  id: `dlg_0_${"0".repeat(26)}`,
  lease: `lse_0_${"0".repeat(26)}_1`,
};
const inPath = (path: string): string =>
  path.replaceAll(
    /\{(\w+)\}/g,
    (_, name: string) => IDS[name] ?? (path.includes("leases/{") ? `lse_0_${"0".repeat(26)}_1` : "nobody"),
  );

test("REST: every body and query", async () => {
  const { url, said, note, refused } = await setup();
  for (const { method, path, schemas } of ROUTES) {
    const to = inPath(path);
    const asks = [
      ...(schemas.body ? wrongValues(jsonSchemaOf(schemas.body)).map((body) => [to, body] as const) : []),
      ...(schemas.query
        ? wrongValues(jsonSchemaOf(schemas.query)).flatMap((query) => {
            const { data } = z.record(z.string(), z.unknown()).safeParse(query);
            const text = Object.entries(data ?? {}).map(
              ([name, value]) => `${name}=${encodeURIComponent(String(value).slice(0, 5_000))}`,
            );
            return text.length === 0 ? [] : [[`${to}?${text.join("&")}`, undefined] as const];
          })
        : []),
    ];
    for (const [where, body] of asks) {
      const answer = await request(url, method, where, {
        ...(body !== undefined && { body }),
        headers: { accept: "application/json" },
      });
      note(`${method} ${where} ${JSON.stringify(body)?.slice(0, 200)}`, answer.body);
    }
  }
  expect(refused()).toBeGreaterThan(150);
  expectKinds(said);
});

test("A2A: every method of both versions", async () => {
  const { url, said, note, refused } = await setup();
  for (const [version, methods] of [
    ["1.0", PARAMS],
    ["0.3", PARAMS_V03],
  ] as const)
    for (const [method, schema] of Object.entries(methods))
      for (const params of wrongValues(jsonSchemaOf(schema))) {
        const body = { jsonrpc: "2.0", id: 1, method, params };
        const answer = await fetch(`${url}/a2a/nobody/rpc`, {
          method: "POST",
          headers: {
            authorization: `Bearer ${OPERATOR}`,
            "content-type": "application/json",
            "a2a-version": version,
          },
          body: JSON.stringify(body),
        });
        note(`${method} ${JSON.stringify(params)?.slice(0, 200)}`, await answer.text());
      }
  expect(refused()).toBeGreaterThan(50);
  expectKinds(said, [/^missing$/, /^must be a list, not /, /^must be a string, not /]);
});

test("AG-UI: every input of a run", async () => {
  const { url, said, note, refused } = await setup();
  for (const body of wrongValues(jsonSchemaOf(runAgentInputSchema)))
    note("a run", (await request(url, "POST", "/ag-ui/nobody", { body })).body);
  expect(refused()).toBeGreaterThan(4);
  expectKinds(said, [/^missing$/, /^must be a list, not /, /^must be a string, not /]);
});

test("MCP: the arguments of every tool, in both eras", async () => {
  const { url, said, note, refused } = await setup();
  const session = await openSession(url, OPERATOR);
  for (const { name, inputSchema } of TOOLS)
    for (const [at, args] of wrongValues(inputSchema).entries()) {
      if (typeof args !== "object" || args === null || Array.isArray(args)) continue;
      const params = { name, arguments: { agent: "nobody", ...args, wait_seconds: 0 } };
      const { body } =
        at % 2 === 0
          ? await requestModern(url, OPERATOR, "tools/call", params)
          : await postMcp(
              url,
              OPERATOR,
              { jsonrpc: "2.0", id: at, method: "tools/call", params },
              { headers: session },
            );
      note(`${name} ${JSON.stringify(args).slice(0, 200)}`, body);
    }
  expect(refused()).toBeGreaterThan(50);
  expectKinds(said, [/^missing$/, /^must be a string, not /, /^at most \d+ characters$/]);
});

/** Params that the protocol itself gives a form. */
const CALLS: readonly (readonly [method: string, params: Record<string, unknown>])[] = [
  ["tools/call", { name: "broker_health", arguments: {} }],
  ["tools/list", { cursor: "x" }],
  ["tasks/get", { taskId: IDS.id }],
  ["tasks/update", { taskId: IDS.id }],
  ["tasks/cancel", { taskId: IDS.id }],
  ["events/list", {}],
  ["events/poll", { name: "delegation.ended", arguments: {}, cursor: "x", maxEvents: 1, maxAgeMs: 1 }],
  ["subscriptions/listen", { notifications: {} }],
  ["server/discover", {}],
  [
    "initialize",
    { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "x", version: "1" } },
  ],
  ["ping", {}],
  ["logging/setLevel", { level: "info" }],
  ["resources/list", { cursor: "x" }],
  ["resources/templates/list", { cursor: "x" }],
  ["resources/read", { uri: "x" }],
  ["prompts/get", { name: "x" }],
];

test("MCP: the params of every method, which the protocol's SDK would check", async () => {
  const { url, said, note } = await setup();
  const session = await openSession(url, OPERATOR);
  for (const [method, params] of CALLS)
    for (const member of [...Object.keys(params), "_meta"])
      for (const value of FEW) {
        const spoiltParams = { ...params, [member]: value };
        const body = { jsonrpc: "2.0", id: 1, method, params: spoiltParams };
        note(`${method} ${member}`, (await postMcp(url, OPERATOR, body, { headers: session })).body);
        note(`${method} ${member}`, (await requestModern(url, OPERATOR, method, spoiltParams)).body);
      }
  expectKinds(said, [/^missing$/, /^must be a string, not /, /^must be an object, not /]);
});
