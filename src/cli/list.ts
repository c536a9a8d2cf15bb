/** `errand list`: delegations, newest first. Limit: the broker looks through a bounded number of them a page. */
import { type Command, Option } from "commander";
import { Pages } from "../client/pages.ts";
import { type Delegation, LIVE_STATES, type State, TERMINAL_STATES } from "../schema/delegation.ts";
import { contextIdSchema, principalSchema } from "../schema/values.ts";
import {
  agentName,
  type Cli,
  connect,
  errorCode,
  examples,
  type GlobalOptions,
  valid,
  wholeBetween,
} from "./context.ts";
import { usageError } from "./failure.ts";
import { note, oneLine, painter, print, printJson, table } from "./output.ts";
import { interruptible } from "./signals.ts";

interface ListOptions extends GlobalOptions {
  readonly target?: string;
  readonly delegator?: string;
  readonly context?: string;
  readonly state?: State;
  readonly errorCode?: string;
  readonly limit?: number;
  readonly cursor?: string;
  readonly all?: boolean;
}

const DEFAULT_LIMIT = 20;
const PAGE = 100;

const ABOUT = `
With --json, one delegation a line; where there are more, a last line {"next_cursor": "…"}.`;

export function addList(program: Command, { host }: Cli): void {
  program
    .command("list")
    .description("delegations that you may see, newest first")
    .option("--target <agent>", "only work for this agent", agentName)
    .option(
      "--delegator <principal>",
      "only work from this principal, for example caller:ci",
      valid(principalSchema),
    )
    .option("--context <id>", "only this conversation", valid(contextIdSchema))
    .addOption(
      new Option("--state <state>", "only in this state").choices([...LIVE_STATES, ...TERMINAL_STATES]),
    )
    .option(
      "--error-code <code>",
      "only what ended with this error, for example attempts_exhausted",
      errorCode,
    )
    .option("--limit <n>", `how many at most (default ${DEFAULT_LIMIT})`, wholeBetween(1, 1_000_000))
    .option("--cursor <cursor>", "go on behind an earlier list")
    .option("--all", "all of them")
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        "errand list --target scout --state working",
        "errand list --state failed --error-code attempts_exhausted --all --json | jq -r .id",
      ),
    )
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<ListOptions>();
      if (options.all && options.limit !== undefined) throw usageError("give either --all or --limit");
      const pages = new Pages(await connect(host, options));
      const { target, delegator, context, state, errorCode: error_code } = options;
      const filter = { target, delegator, context_id: context, state, error_code };
      let wanted = options.all ? Number.POSITIVE_INFINITY : (options.limit ?? DEFAULT_LIMIT);
      let cursor: string | null | undefined = options.cursor;
      let isFirst = true;
      const { bold } = painter(host, "stdout");
      await interruptible(async (signal) => {
        do {
          const query = { ...filter, limit: Math.min(wanted, PAGE), cursor: cursor ?? undefined };
          const page = await pages.list(query, signal);
          for (const one of options.json ? page.delegations : []) await printJson(host, one);
          if (!options.json && (isFirst || page.delegations.length > 0)) {
            const [head = "", ...rows] = asTable(page.delegations);
            await print(host, [...(isFirst ? [bold(head)] : []), ...rows].join("\n"));
          }
          isFirst = false;
          wanted -= page.delegations.length;
          cursor = page.next_cursor;
        } while (cursor !== null && wanted > 0);
      });
      if (cursor === null || cursor === undefined) return;
      await (options.json
        ? printJson(host, { next_cursor: cursor })
        : note(host, `there are more: --cursor ${cursor}, or --all.`));
    });
}

function asTable(delegations: readonly Delegation[]): string[] {
  const rows = delegations.map(({ id, state, target, delegator, created_at, error, task_preview }) => [
    id,
    state,
    target,
    delegator,
    created_at,
    oneLine(error && error.code !== state ? `(${error.code}) ${task_preview}` : task_preview, 60),
  ]);
  // Widths that most pages have in common, so that they line up.
  const head = [
    "ID".padEnd(32),
    "STATE".padEnd(14),
    "TARGET".padEnd(12),
    "DELEGATOR".padEnd(16),
    "CREATED",
    "TASK",
  ];
  return table([head, ...rows]).split("\n");
}
