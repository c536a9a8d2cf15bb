/** The inspector's own program does every tool, by turns in each era. Limit: a process for each call. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { TOOLS } from "../../../src/doors/mcp/tools/tools.ts";
import { as, startBroker } from "../../support/broker.ts";
import type { Era } from "../../support/mcp.ts";
import { type CallTool, everyTool } from "../../support/mcp-story.ts";
import { freshDir } from "../../support/program.ts";

const INSPECTOR = fileURLToPath(
  new URL(
    "../../../node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js",
    import.meta.url,
  ),
);
const ERAS: readonly Era[] = ["modern", "legacy"];

test("every tool, and the list of tools in both eras", async () => {
  const { url } = await startBroker();
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const alice = await as(url, "caller:alice");
  const HOME = freshDir();
  const inspect = async (era: Era, token: string, ...args: string[]) => {
    const connection = ["--cli", `${url}/mcp`, "--transport", "http", "--protocol-era", era];
    const credential = ["--header", `Authorization: Bearer ${token}`, "--stored-auth-only"];
    const all = [INSPECTOR, ...connection, ...credential, "--format", "json", "--quiet", ...args];
    const { stdout } = await promisify(execFile)(process.execPath, all, {
      env: { ...process.env, HOME },
      timeout: 60_000,
    });
    return JSON.parse(stdout).result;
  };
  for (const era of ERAS) {
    const { tools } = await inspect(era, scout.token, "--method", "tools/list");
    expect(tools.map(({ name }: { name: string }) => name)).toEqual(TOOLS.map(({ name }) => name));
  }
  // It falls to the modern era to call delegate_task, and the inspector takes a task for it there.
  let calls = 0;
  const by =
    (token: string): CallTool =>
    async (name, args) => {
      const era = calls++ % 2 === 0 ? "modern" : "legacy";
      const tool = ["--tool-name", name, "--tool-args-json", JSON.stringify(args)];
      const { structuredContent } = await inspect(era, token, "--method", "tools/call", ...tool);
      return structuredContent;
    };
  await everyTool(by(alice.token), by(scout.token));
}, 180_000);
