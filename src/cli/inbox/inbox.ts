/** `errand inbox`: what needs this person, as a list to work through on a terminal, or as plain lines. */
import type { Command } from "commander";
import { Admin } from "../../client/admin.ts";
import { Pages } from "../../client/pages.ts";
import { type Cli, connectToRead, examples, type GlobalOptions } from "../context.ts";
import { Counted } from "../counted.ts";
import type { CliHost } from "../host.ts";
import { INSTANT_EXAMPLE, instant } from "../input/instant.ts";
import { fullScreen, hasScreen } from "../screen/full-screen.ts";
import { note, print, printJson } from "../show/output.ts";
import { interruptible } from "../signals.ts";
import { entryLines } from "./columns.ts";
import { seenNow, toEntry } from "./entry.ts";
import { InboxView } from "./inbox-view.ts";
import { readInbox, type Scope } from "./read.ts";

interface InboxOptions extends GlobalOptions {
  readonly since?: string;
}

const DAY_MS = 86_400_000;

const ABOUT = `
It shows the open questions that you may answer, the soonest to expire first, then those that you have approved, or whose
approval is for others ('deny only'), and then the results of what you delegated. On a terminal it stays open: new questions appear, and those that others answer disappear.

  ↑ ↓, j k   move, or scroll           Enter  open a question or a result
  a          approve, with a comment   d      deny, with a comment
  r          answer a question         e      approve with other arguments,
                                              if the agent allows it
  y          approve what others have  o      show the delegation
             approved, with their      q      back, and quit
             changes

Nothing is sent before Enter. Esc leaves an answer and keeps its text. If the broker refuses an answer, the reason is
shown beside it.

Without a terminal it prints one line for each; with --json, one delegation per line.`;

export function addInbox(program: Command, { host }: Cli): void {
  program
    .command("inbox")
    .description("show what needs you: questions to answer, and recent results of your delegations")
    .option(
      "--since <instant>",
      `only results that ended at or after this time, ${INSTANT_EXAMPLE} (default: 1d)`,
      instant,
    )
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples("errand inbox", "errand inbox --since 7d", "errand inbox --json | jq -r .id"),
    )
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<InboxOptions>();
      const connection = await connectToRead(host, options);
      const { principal, now } = await new Admin(connection).status();
      const dayAgo = new Date(Date.parse(now) - DAY_MS).toISOString();
      const scope = { principal, since: options.since ?? dayAgo };
      const ahead = Date.parse(now) - Date.now();
      const brokerNow = () => Date.now() + ahead;
      if (options.json || !hasScreen(host)) {
        const counted = new Counted(connection, principal, brokerNow);
        await printInbox(host, new Pages(connection), { ...scope, counted }, brokerNow, options);
        return;
      }
      await fullScreen(host, new InboxView(host, connection, scope, brokerNow));
    });
}

async function printInbox(
  host: CliHost,
  pages: Pages,
  scope: Scope,
  now: () => number,
  options: GlobalOptions,
): Promise<void> {
  const found = await interruptible((signal) => readInbox(pages, scope, signal));
  if (options.json) for (const delegation of found) await printJson(host, delegation);
  else if (found.length === 0) await note(host, "nothing waits for you.");
  else
    await print(
      host,
      entryLines(
        host,
        found.map((one) => seenNow(toEntry(one, scope.principal), scope.counted)),
        now(),
      ).join("\n"),
    );
}
