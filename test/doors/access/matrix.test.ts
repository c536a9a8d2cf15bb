/**
 * Tries every route, A2A operation and MCP tool as every principal: the tables say what each gets. A refusal changes
 * nothing, and another principal's id gets exactly the response of one that does not exist. matrix-forms.slow.test.ts tries
 * the other forms of A2A and MCP.
 */
import { describe, expect, test } from "vitest";
import { PARAMS } from "../../../src/doors/a2a/params.ts";
import { createHttpApp } from "../../../src/doors/http/app.ts";
import { TOOLS } from "../../../src/doors/mcp/tools/tools.ts";
import { A2A } from "./matrix-a2a.ts";
import { MCP } from "./matrix-mcp.ts";
import { askOf, REST, routeOf, stageOf } from "./matrix-rest.ts";
import { tryA2a, tryMcp, tryRow } from "./try-row.ts";
import { openWorld } from "./world.ts";

/** Mounts whose operations have their own tables. */
const MOUNTS = [
  "POST /a2a/:agent/rpc",
  "POST /a2a/:agent/rpc/",
  "GET /a2a/:agent/rest/*",
  "POST /a2a/:agent/rest/*",
  "DELETE /a2a/:agent/rest/*",
  "POST /mcp",
  // The same for everybody: test/console/serving.test.ts.
  "GET /console/*",
  "GET /sw.js",
];

describe("over HTTP", () => {
  test("every route has a row", async () => {
    const { gateway } = await openWorld();
    const app = createHttpApp({
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
      "add a row for each to REST in matrix-rest.ts, and to NEEDS what the request needs",
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

  test("each row is as the table says: HTTP+JSON 1.0", { timeout: 240_000 }, () => tryA2a("HTTP+JSON 1.0"));
});

describe("over MCP", () => {
  test("every tool has a row", () => {
    const tools = [...TOOLS.map(({ name }) => name), "tasks/get", "tasks/update", "tasks/cancel"];
    expect(
      Object.keys(MCP).sort(),
      "add the tool to MCP in access-matrix-mcp.ts, with its arguments",
    ).toEqual(tools.sort());
  });

  test("each row is as the table says: modern", { timeout: 240_000 }, () => tryMcp("modern"));
});
