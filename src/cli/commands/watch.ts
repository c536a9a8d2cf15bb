/** `errand watch`: prints events as they happen, one per line. */
import { type Command, InvalidArgumentError } from "commander";
import { Delegator } from "../../client/delegator.ts";
import { EVENT_TYPES, type EventType } from "../../schema/event.ts";
import { type Cli, connect, examples, type GlobalOptions } from "../context.ts";
import { usageError } from "../failure.ts";
import { agentName, DELEGATION, delegationId } from "../input/arguments.ts";
import { eventLine } from "../show/event-line.ts";
import { note, painter, print, printJson } from "../show/output.ts";
import { interruptible } from "../signals.ts";
import { didYouMean } from "../similar.ts";

interface WatchOptions extends GlobalOptions {
  readonly target?: string;
  readonly delegator?: string;
  readonly context?: string;
  readonly types?: EventType[];
  readonly after?: string;
}

export function addWatch(program: Command, { host }: Cli): void {
  program
    .command("watch")
    .description("print events as they happen: of one delegation until it ends, or of all that you may see")
    .argument("[id]", DELEGATION, delegationId)
    .option("--target <agent>", "only work for this agent", agentName)
    .option("--delegator <principal>", "only work from this principal, for example caller:ci")
    .option("--context <id>", "only this conversation")
    .option("--types <types>", `only these types, separated by commas: ${EVENT_TYPES.join(", ")}`, eventTypes)
    .option("--after <cursor>", "resume after this event; 0 is the beginning (default: now)")
    .addHelpText(
      "after",
      examples("errand watch", "errand watch dlg_…", "errand watch --target scout --json"),
    )
    .action(async (id: string | undefined, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<WatchOptions>();
      const { target, delegator, context, types, after, json } = options;
      if (id !== undefined && (target ?? delegator ?? context ?? types) !== undefined) {
        throw usageError("give either an id or filters");
      }
      const connection = await connect(host, options);
      let isNoted = false;
      const onRetry = () => {
        if (isNoted || json) return;
        isNoted = true;
        void note(host, "the broker is unavailable; watching resumes when it is back.");
      };
      /** The stream opens again before it has an event. */
      const watching: typeof fetch = async (input, init) => {
        const response = await fetch(input, init);
        if (isNoted && response.ok) {
          isNoted = false;
          void note(host, "the broker is back; watching.");
        }
        return response;
      };
      const paint = painter(host, "stdout");
      const what = id ?? { target, delegator, context_id: context, types };
      await interruptible(async (signal) => {
        const delegator = new Delegator({ ...connection, onRetry, fetch: watching });
        for await (const event of delegator.watch(what, { after, signal })) {
          await (json ? printJson(host, event) : print(host, eventLine(event, paint)));
        }
      });
    });
}

function eventTypes(value: string): EventType[] {
  return value.split(",").map((name) => {
    const type = EVENT_TYPES.find((known) => known === name.trim().toUpperCase());
    if (type) return type;
    const known = `'${name}' is not an event type; use ${EVENT_TYPES.join(", ")}.`;
    throw new InvalidArgumentError(`${known} ${didYouMean(name.trim().toUpperCase(), EVENT_TYPES)}`.trim());
  });
}
