/**
 * Tries every route, A2A operation and MCP tool as every principal: the tables say what each gets. A refusal changes
 * nothing, and another principal's id gets exactly the response of one that does not exist.
 */
import { describe, expect, test } from "vitest";
import { PARAMS } from "../../../src/doors/a2a/params.ts";
import { createHttpApp } from "../../../src/doors/http/app.ts";
import { TOOLS } from "../../../src/doors/mcp/tools/tools.ts";
import { A2A, A2A_FORMS, a2aAsk, a2aStage } from "./matrix-a2a.ts";
import { connectMcp, MCP, MCP_ERAS, mcpAsk, mcpStage } from "./matrix-mcp.ts";
import { askOf, REST, routeOf, stageOf } from "./matrix-rest.ts";
import {
  type Ask,
  COLUMNS,
  type Column,
  openWorld,
  type Row,
  STRANGERS,
  type Stage,
  type Subject,
  send,
  shapeOf,
  toRow,
  unknownOf,
  type World,
  wordOf,
} from "./world.ts";

/** Mounts whose operations have their own tables. */
const MOUNTS = [
  "POST /a2a/:agent/rpc",
  "POST /a2a/:agent/rpc/",
  "GET /a2a/:agent/rest/*",
  "POST /a2a/:agent/rest/*",
  "DELETE /a2a/:agent/rest/*",
  "POST /mcp",
  "DELETE /mcp",
  // The same for everybody: test/console/serving.test.ts.
  "GET /console/*",
];

type AskOf = (subject: Subject, column: Column) => Ask;

interface Trial {
  readonly row: Row;
  readonly stage: Stage;
  readonly ask: AskOf;
  /** The row changes nothing, so one subject serves all columns. */
  readonly reads: boolean;
}

/** Tries a row and compares the result of each column. Refusals come first, on one subject, which must not change. */
async function tryRow(
  world: World,
  name: string,
  { row: expected, stage, ask, reads }: Trial,
): Promise<void> {
  const { url, tokens, prepare, kept } = world;
  const isList = Object.values(expected).some((word) => word === "sees" || word === "blind");
  const got = new Map<Column, string>();
  const one = async (column: Column, subject: Subject) => {
    const words = new Set<string>();
    for (const token of tokens[column]) {
      const received = await send(url, token, ask(subject, column));
      words.add(wordOf(received, subject, isList));
      if (!STRANGERS.includes(column) || isList || expected[column] === "ok") continue;
      const unknown = unknownOf(subject);
      const absent = await send(url, token, ask(unknown, column));
      expect(shapeOf(received, subject), `${column}: a foreign id is answered as an unknown one`).toEqual(
        shapeOf(absent, unknown),
      );
    }
    got.set(column, [...words].join("|"));
  };
  const acts = COLUMNS.filter((column) => expected[column] === "ok");
  const shared = await prepare(stage);
  const before = await kept(shared);
  for (const column of COLUMNS.filter((name) => !acts.includes(name))) await one(column, shared);
  expect(await kept(shared), "a refusal changes nothing").toEqual(before);
  for (const column of acts) await one(column, reads ? shared : await prepare(stage));
  const found = toRow(COLUMNS.map((column) => got.get(column) ?? "?"));
  expect.soft({ [name]: found }).toEqual({ [name]: expected });
}

describe("over HTTP", () => {
  test("every route has a row", async () => {
    const { gateway } = await openWorld();
    const { app } = createHttpApp({
      broker: gateway.broker,
      host: "127.0.0.1",
      maxBodyBytes: 1,
      allowedOrigins: [],
      stopping: AbortSignal.abort(),
      signer: null,
      readiness: async () => ({ status: "ready" }),
    });
    const routes = app.routes
      .map(({ method, path }) => `${method} ${path}`)
      .filter((name) => name !== "ALL /*");
    const rows = new Set([...Object.keys(REST).map(routeOf), ...MOUNTS]);
    expect(
      routes.filter((name) => !rows.has(name)),
      "add a row for each to REST in access-matrix-rest.ts, and to NEEDS what the request needs",
    ).toEqual([]);
    expect(
      [...rows].filter((name) => !routes.includes(name)),
      "rows without a route",
    ).toEqual([]);
  });

  test("each row is as the table says", { timeout: 240_000 }, async () => {
    const world = await openWorld();
    for (const [name, row] of Object.entries(REST)) {
      const [stage, reads] = [stageOf(name), name.startsWith("GET ") || name.endsWith("to attach")];
      await tryRow(world, name, { row, stage, reads, ask: (subject) => askOf(name, subject) });
    }
  });
});

describe("over A2A", () => {
  test("every operation has a row", () => {
    expect(
      Object.keys(A2A).sort(),
      "add the operation to A2A and to OPERATIONS in access-matrix-a2a.ts",
    ).toEqual(Object.keys(PARAMS).sort());
  });

  test.each(A2A_FORMS)("each row is as the table says: %s", { timeout: 240_000 }, async (form) => {
    const world = await openWorld();
    for (const [name, row] of Object.entries(A2A)) {
      const ask = a2aAsk(form, name);
      const reads = !/^(?:Send|Cancel|Create|Delete)/.test(name);
      if (ask) await tryRow(world, name, { row, stage: a2aStage(name), ask, reads });
    }
  });
});

describe("over MCP", () => {
  test("every tool has a row", () => {
    const tools = [...TOOLS.map(({ name }) => name), "tasks/get", "tasks/update", "tasks/cancel"];
    expect(
      Object.keys(MCP).sort(),
      "add the tool to MCP in access-matrix-mcp.ts, with its arguments",
    ).toEqual(tools.sort());
  });

  test.each(MCP_ERAS)("each row is as the table says: %s", { timeout: 240_000 }, async (era) => {
    const world = await openWorld();
    const sessions = era === "modern" ? null : await connectMcp(world);
    for (const [name, row] of Object.entries(MCP)) {
      if (name.startsWith("tasks/") && era === "legacy") continue;
      const reads = name === "tasks/get" || TOOLS.some((tool) => tool.name === name && tool.readOnly);
      const ask = (subject: Subject, column: Column) => mcpAsk(name, subject, column, sessions);
      await tryRow(world, name, { row, stage: mcpStage(name), ask, reads });
    }
  });
});
