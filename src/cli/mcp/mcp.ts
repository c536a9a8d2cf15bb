/** `errand mcp`: the broker's tools for MCP clients that speak stdio. Limit: a bridge; the server is the broker. */
import type { Command } from "commander";
import { ErrandApiError } from "../../client/errors.ts";
import { invalidUrl } from "../../client/failures.ts";
import { withoutTrailingSlashes } from "../../schema/text.ts";
import { type Cli, examples, type GlobalOptions } from "../context.ts";
import { discover, type Target } from "../discover.ts";
import type { CliHost } from "../host.ts";
import { note, oneLine, print } from "../show/output.ts";
import { interruptible } from "../signals.ts";
import { Bridge } from "./bridge.ts";

const ABOUT = `
An MCP client starts this program and speaks to it over stdin and stdout; it passes everything on to the broker's
/mcp and back, for the revisions of the protocol that the broker speaks. Give the client ERRAND_URL and ERRAND_TOKEN
as environment: the token decides which tools there are, and as whom they act. A client that speaks HTTP needs none
of this; docs/mcp.md has the configuration for both.

While the broker is away each call is answered with an error that says so, and the next one looks again. Remarks go
to stderr.
`;

export function addMcp(program: Command, { host }: Cli): void {
  program
    .command("mcp")
    .description("be an MCP server on stdio: the broker's tools for a coding agent")
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        "claude mcp add errand --env ERRAND_URL=http://127.0.0.1:4180 --env ERRAND_TOKEN=errand_… -- errand mcp",
        "npx @modelcontextprotocol/inspector --cli -e ERRAND_URL=http://127.0.0.1:4180 -e ERRAND_TOKEN=errand_… errand mcp --method tools/list",
      ),
    )
    .action(async (_options: unknown, command: Command) => {
      await serve(host, command.optsWithGlobals<GlobalOptions>());
    });
}

async function serve(host: CliHost, options: GlobalOptions): Promise<void> {
  const say = (line: string) => void note(host, oneLine(line)).catch(() => undefined);
  const target = async (): Promise<Target> => {
    const { url, token } = await discover(host.env, options);
    if (!URL.canParse(url) || !/^https?:/.test(url)) throw invalidUrl(url);
    return { url: withoutTrailingSlashes(url), token };
  };
  // A mistake in the configuration is told at once; a broker that is not there yet may come.
  await target().catch((error: unknown) => {
    if (!(error instanceof ErrandApiError && error.retryable)) throw error;
    say(`${error.message}. ${error.recovery}`);
  });
  if (host.isTty.stdin) say("this speaks MCP on stdin and stdout, and is started by an MCP client.");
  const bridge = new Bridge({ target, say, send: (line) => print(host, line) });
  await interruptible(async (signal) => {
    await bridge.run(host.stdin, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      throw error;
    });
  });
}
