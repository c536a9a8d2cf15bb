/** `errand watch`: prints events as they happen, one per line. */

import { type Command, InvalidArgumentError } from "commander";
import { Delegator } from "../../client/delegator.ts";
import { environmentFetch } from "../../client/environment-fetch.ts";
import { EVENT_TYPES, type EventType } from "../../schema/event.ts";
import { didYouMean } from "../../util/similar.ts";
import { type Cli, connect, examples, type GlobalOptions } from "../context.ts";
import { Desktop } from "../desktop.ts";
import { usageError } from "../failure.ts";
import { agentName, DELEGATION, delegationId, separated } from "../input/arguments.ts";
import { asSent, eventLine, nodeLine } from "../show/event-line.ts";
import { note, oneLine, painter, print, printJson } from "../show/output.ts";
import { terminalWidth } from "../show/terminal-width.ts";
import { localTime } from "../show/time.ts";
import { interruptible } from "../signals.ts";
import { type WatchedEvent, watchQuestions } from "../watch-questions.ts";

interface WatchOptions extends GlobalOptions {
  readonly target?: string;
  readonly delegator?: string;
  readonly context?: string;
  readonly types?: EventType[];
  readonly questions?: boolean;
  readonly notify?: boolean;
  readonly tree?: boolean;
  readonly after?: string;
  readonly wide?: boolean;
}

const ABOUT = `
Each line has the local time, the beginning of the id, the agent and what happened. It is cut at the width of the
terminal, or at 80 columns without one.

With --json, store the id of an event, and pass it with --after to resume. Of the questions that are open already, only
the last one has an id, because it covers them all. A RESET says that some events are no longer stored; with --questions,
the open questions follow it.`;

const LOST =
  "some events are no longer stored. Questions that were asked and answered meanwhile are not shown; the open ones follow.";

export function addWatch(program: Command, { host }: Cli): void {
  program
    .command("watch")
    .description("print events as they happen: of one delegation until it ends, or of all that you may see")
    .argument("[id]", DELEGATION, delegationId)
    .option("--target <agent>", "only work for this agent", agentName)
    .option("--delegator <principal>", "only work from this principal, for example caller:ci")
    .option("--context <id>", "only this conversation")
    .option(
      "--types <types>",
      `only these types, separated by commas: ${EVENT_TYPES.join(", ")}`,
      separated(EVENT_TYPES, eventTypes),
    )
    .option("--questions", "only questions: those that are open now, then each at the moment it is asked")
    .option(
      "--notify",
      "also show each question on this machine's desktop: the agent's name and that it asks; without a desktop ring the bell",
    )
    .option(
      "--tree",
      "the delegation and everything delegated under it: agents and states; the id is that of the root",
    )
    .option("--after <cursor>", "resume after this event; 0 is the beginning (default: now)")
    .option("--wide", "show whole lines, however long they become")
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        "errand watch",
        "errand watch dlg_…",
        "errand watch --tree dlg_…",
        "errand watch --target scout --json",
        "errand watch --questions --notify",
        "errand watch --questions --json | while read -r _; do printf '\\a'; done",
      ),
    )
    .action(async (id: string | undefined, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<WatchOptions>();
      const { target, delegator, context, questions, after, wide, json } = options;
      if (questions && options.types !== undefined) throw usageError("give either --questions or --types");
      if (id !== undefined && (target ?? delegator ?? context ?? options.types) !== undefined) {
        throw usageError("give either an id or filters");
      }
      if (options.tree && (id === undefined || questions)) {
        throw usageError("--tree goes with the id of a root, and without --questions");
      }
      if (options.tree && options.notify) throw usageError("give either --tree or --notify");
      const connection = await connect(host, options);
      let isNoted = false;
      const onRetry = () => {
        if (isNoted || json) return;
        isNoted = true;
        void note(host, "the broker is unavailable; watching resumes when it is back.").catch(
          () => undefined,
        );
      };
      /** Reports that the broker is back when the stream opens, which may be long before its first event. */
      const watching: typeof fetch = async (input, init) => {
        const response = await environmentFetch(input, init);
        if (isNoted && response.ok) {
          isNoted = false;
          void note(host, "the broker is back; watching.").catch(() => undefined);
        }
        return response;
      };
      const paint = painter(host, "stdout");
      const width = wide ? Number.POSITIVE_INFINITY : terminalWidth(host, "stdout");
      if (host.isTty.stderr && !json) await note(host, whatIsWatched(id, options));
      const what = id ?? { target, delegator, context_id: context, types: options.types };
      await interruptible(async (signal) => {
        const delegator = new Delegator({ ...connection, onRetry, fetch: watching });
        if (options.tree && id !== undefined) {
          for await (const event of delegator.watchNodes(id, { after, signal }))
            await (json ? printJson(host, event) : print(host, nodeLine(event, paint)));
          return;
        }
        const events = questions
          ? watchQuestions(delegator, what, { after, signal })
          : delegator.watch(what, { after, signal });
        const desktop = options.notify ? new Desktop(host, { quiet: json === true }) : undefined;
        for await (const event of events) {
          const asking = desktop && askingAgent(event);
          if (asking !== undefined) desktop?.asks(asking);
          if (json) await printJson(host, asSent(event));
          else if (questions && event.type === "RESET") await note(host, LOST);
          else await print(host, eventLine(event, paint, width));
        }
        await desktop?.shown();
      });
    });
}

/** The agent, if the event shows a question. */
function askingAgent(event: WatchedEvent): string | undefined {
  if (event.type === "RESET") return undefined;
  if (event.type === "DELEGATION_SNAPSHOT")
    return event.delegation.interrupt ? event.delegation.target : undefined;
  return "interrupt" in event ? event.target : undefined;
}

/** The first line, because nothing may happen for a long time. */
function whatIsWatched(id: string | undefined, options: WatchOptions): string {
  const { target, delegator, context, types, questions, tree, after } = options;
  const zone = localTime(new Date().toISOString()).split(" ")[2];
  const of = [
    target && `for ${target}`,
    delegator && `from ${oneLine(delegator)}`,
    context && `in the conversation ${oneLine(context)}`,
  ].filter(Boolean);
  const asked = tree ? "the tree of " : questions ? "questions of " : "";
  const work = id ?? (of.length > 0 ? `work ${of.join(" ")}` : "all work that you may see");
  const since = after === undefined ? "" : after === "0" ? " from the beginning" : ` after ${oneLine(after)}`;
  const only = types === undefined ? "" : ` (only ${types.join(", ")})`;
  const end = id === undefined || tree ? "Ctrl-C ends it" : "until it ends, or Ctrl-C";
  return `watching ${asked}${work}${only}${since}, in local time (${zone}); ${end}.`;
}

function eventTypes(value: string): EventType[] {
  return value.split(",").map((name) => {
    const type = EVENT_TYPES.find((known) => known === name.trim().toUpperCase());
    if (type) return type;
    const known = `'${name}' is not an event type; use ${EVENT_TYPES.join(", ")}.`;
    throw new InvalidArgumentError(`${known} ${didYouMean(name.trim().toUpperCase(), EVENT_TYPES)}`.trim());
  });
}
