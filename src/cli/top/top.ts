/** `errand top`: agents, their queues and the open questions, live on a terminal, or one snapshot. */
import type { Command } from "commander";
import { Admin } from "../../client/admin.ts";
import { Pages } from "../../client/pages.ts";
import { type Cli, connectToRead, examples, type GlobalOptions } from "../context.ts";
import { fullScreen, hasScreen } from "../screen/full-screen.ts";
import { painter, print, printJson } from "../show/output.ts";
import { terminalWidth } from "../show/terminal-width.ts";
import { interruptible } from "../signals.ts";
import { topLines } from "./lines.ts";
import { readSnapshot } from "./read.ts";
import { TopView } from "./top-view.ts";

interface TopOptions extends GlobalOptions {
  readonly once?: boolean;
}

const ABOUT = `
Busy agents come first. OLDEST is the age of the agent's oldest queued delegation: the highest sample of the last
minute. Workers and ages are shown for the first 25 agents, as far as your token may see them.

The screen is refreshed at each event, and every 2 s. Arrow keys, j and k scroll, q quits.

Without a terminal, with --once or with --json, it prints one snapshot and ends.`;

export function addTop(program: Command, { host }: Cli): void {
  program
    .command("top")
    .description("show agents, workers, queues and open questions, live")
    .option("--once", "print one snapshot")
    .addHelpText("after", ABOUT)
    .addHelpText("after", examples("errand top", "errand top --once", "errand top --json | jq .totals"))
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<TopOptions>();
      const connection = await connectToRead(host, options);
      const source = { admin: new Admin(connection), pages: new Pages(connection) };
      const snapshot = await interruptible((signal) => readSnapshot(source, signal));
      if (options.json) return printJson(host, snapshot);
      if (hasScreen(host) && !options.once) return fullScreen(host, new TopView(host, connection, snapshot));
      const width = terminalWidth(host, "stdout");
      const paint = painter(host, "stdout");
      const { summary, agents, questions } = topLines(host, paint, snapshot, width);
      const parts = [summary, agents, questions].filter((lines) => lines.length > 0);
      await print(host, parts.map((lines) => lines.join("\n")).join("\n\n"));
    });
}
