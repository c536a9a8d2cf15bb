/** `errand mcp`: bridges MCP clients on stdio to the broker's MCP server. */
import type { Command } from "commander";
import { ErrandApiError } from "../../client/errors.ts";
import { withoutTrailingSlashes } from "../../schema/text.ts";
import { type Cli, examples, type GlobalOptions } from "../context.ts";
import { discover, type Target } from "../discover.ts";
import type { CliHost } from "../host.ts";
import { note, oneLine, print } from "../show/output.ts";
import { interruptible } from "../signals.ts";
import { Bridge } from "./bridge.ts";

const ABOUT = `
An MCP client starts this program, which passes messages between stdio and the broker's /mcp, for all protocol revisions
that the broker supports. Set ERRAND_URL and ERRAND_TOKEN in the client's configuration: the token decides which tools
are available and as which principal they act. A client that speaks HTTP can connect to the broker directly; docs/mcp.md
shows both configurations.

While the broker is unavailable, each call fails with an error that says so, and the next call tries again. Log lines go
to stderr. The second example lists the tools with the MCP inspector.`;

export function addMcp(program: Command, { host }: Cli): void {
  program
    .command("mcp")
    .description("run an MCP server on stdio with the broker's tools, for a coding agent")
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        "claude mcp add errand --env ERRAND_URL=http://127.0.0.1:4180 --env ERRAND_TOKEN=errand_… -- errand mcp",
        "npx @modelcontextprotocol/inspector --cli -e ERRAND_URL=http://127.0.0.1:4180 -e ERRAND_TOKEN=errand_… errand mcp --method tools/list",
      ),
    )
    .action(async (_options: unknown, command: Command) => {
      await runBridge(host, command.optsWithGlobals<GlobalOptions>());
    });
}

async function runBridge(host: CliHost, options: GlobalOptions): Promise<void> {
  const say = (line: string) => void note(host, oneLine(line)).catch(() => undefined);
  const target = async (): Promise<Target> => {
    const { url, token } = await discover(host.env, options);
    return { url: withoutTrailingSlashes(url), token };
  };
  // A configuration error ends the program at once; a missing broker may start later.
  await target().catch((error: unknown) => {
    if (!(error instanceof ErrandApiError && error.retryable)) throw error;
    say(`${error.message}. ${error.recovery}`);
  });
  if (host.isTty.stdin) say("this program speaks MCP on stdin and stdout; let an MCP client start it.");
  const bridge = new Bridge({ target, say, send: (line) => print(host, line) });
  await interruptible(async (signal) => {
    await bridge.run(host.stdin, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      throw error;
    });
  });
}
