/** The tables of access in the forms of A2A and MCP that matrix.test.ts leaves out. */
import { describe, test } from "vitest";
import { A2A_FORMS } from "./matrix-a2a.ts";
import { MCP_ERAS } from "./matrix-mcp.ts";
import { tryA2a, tryMcp } from "./try-row.ts";

describe("over A2A", () => {
  const others = A2A_FORMS.filter((form) => form !== "HTTP+JSON 1.0");
  test.each(others)("each row is as the table says: %s", { timeout: 240_000 }, (form) => tryA2a(form));
});

describe("over MCP", () => {
  const others = MCP_ERAS.filter((era) => era !== "modern");
  test.each(others)("each row is as the table says: %s", { timeout: 240_000 }, (era) => tryMcp(era));
});
