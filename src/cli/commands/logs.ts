/** `errand logs`: the story of a delegation, from its first event on. */
import type { Command } from "commander";
import { Delegator } from "../../client/delegator.ts";
import { isLast } from "../../client/events.ts";
import type { ConnectionOptions } from "../../client/http.ts";
import { Pages } from "../../client/pages.ts";
import type { StreamEvent } from "../../schema/event.ts";
import { type Cli, connect, connectToRead, examples, type GlobalOptions } from "../context.ts";
import { DELEGATION, delegationId } from "../input/arguments.ts";
import { filesText } from "../show/artifact-line.ts";
import { asSent } from "../show/event-line.ts";
import { painter, print, printJson } from "../show/output.ts";
import { Story } from "../show/story.ts";
import { terminalWidth, wrapWidth } from "../show/terminal-width.ts";
import { interruptible } from "../signals.ts";

interface LogsOptions extends GlobalOptions {
  readonly follow?: boolean;
  readonly wide?: boolean;
}

const PAGE = 100;

const ABOUT = `
Times are local. Each line also shows the time since the line before. Lines are cut at the width of the terminal, but not why it
or an attempt failed. With --json, it prints the events as the broker stores them, one per line.`;

export function addLogs(program: Command, { host }: Cli): void {
  program
    .command("logs")
    .description("show what happened to a delegation, one line per event")
    .argument("<id>", DELEGATION, delegationId)
    .option("-f, --follow", "continue with new events until it ends")
    .option("--wide", "show everything, however long the lines become")
    .addHelpText("after", ABOUT)
    .addHelpText("after", examples("errand logs @last --follow", "errand logs dlg_… --json | jq -r .status"))
    .action(async (id: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<LogsOptions>();
      const { json, wide, follow } = options;
      const width = wide ? Number.POSITIVE_INFINITY : terminalWidth(host, "stdout");
      const wrap = wide ? Number.POSITIVE_INFINITY : wrapWidth(host);
      const paint = painter(host, "stdout");
      const connection = await (follow ? connect : connectToRead)(host, options);
      await interruptible(async (signal) => {
        const files = json ? "" : filesText((await new Delegator(connection).get(id, { signal })).message);
        const story = new Story(paint, { width, wrap, files });
        const events = follow
          ? new Delegator(connection).watch(id, { after: "0", signal })
          : stored(connection, id, signal);
        for await (const event of events) {
          if (json) await printJson(host, asSent(event));
          else if (event.type === "RESET")
            await print(host, paint.yellow("earlier events are no longer stored"));
          else if (event.type !== "DELEGATION_SNAPSHOT") await print(host, story.linesOf(event).join("\n"));
        }
      });
    });
}

/** All events so far, page by page. */
async function* stored(
  connection: ConnectionOptions,
  id: string,
  signal: AbortSignal,
): AsyncGenerator<StreamEvent> {
  const pages = new Pages(connection);
  let after = "0";
  for (;;) {
    const events = await pages.events(id, PAGE, signal, after);
    yield* events;
    const last = events.at(-1);
    // After the final event there is no further page.
    if (last === undefined || isLast(last)) return;
    after = last.id;
  }
}
