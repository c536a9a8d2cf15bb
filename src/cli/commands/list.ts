/** `errand list`: lists delegations, newest first. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { ErrandApiError } from "../../client/errors.ts";
import { type ConnectionOptions, Http } from "../../client/http.ts";
import { listPage } from "../../client/list-page.ts";
import { type DelegationFilter, LIVE_STATES, type State, TERMINAL_STATES } from "../../schema/delegation.ts";
import { contextIdSchema, principalSchema } from "../../schema/values.ts";
import { didYouMean } from "../../util/similar.ts";
import { type Cli, connectToRead, examples } from "../context.ts";
import { usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { agentName, delegationId, errorCode, separated, valid, wholeBetween } from "../input/arguments.ts";
import { INSTANT_EXAMPLE, instant } from "../input/instant.ts";
import { COLUMNS, delegationRows } from "../show/delegation-columns.ts";
import { noteKnownCodes } from "../show/known-codes.ts";
import { noteMore, pagesUpTo } from "../show/list-pages.ts";
import { addTableOptions, ListTable, type TableOptions } from "../show/list-table.ts";
import { note, printJson } from "../show/output.ts";
import { printTree } from "../show/tree.ts";
import { interruptible } from "../signals.ts";
import { similarAgent } from "../similar-agent.ts";

interface ListOptions extends TableOptions {
  readonly target?: string;
  readonly delegator?: string;
  readonly context?: string;
  readonly state?: readonly State[];
  readonly since?: string;
  readonly until?: string;
  readonly endedSince?: string;
  readonly query?: string;
  readonly errorCode?: string;
  readonly limit?: number;
  readonly cursor?: string;
  readonly all?: boolean;
  /** True without an id. */
  readonly tree?: string | true;
}

const FILTERS = [
  "target",
  "delegator",
  "context",
  "state",
  "since",
  "until",
  "endedSince",
  "query",
  "errorCode",
  "limit",
  "cursor",
  "all",
] as const satisfies readonly (keyof ListOptions)[];
const STATES = [...LIVE_STATES, ...TERMINAL_STATES];
/** The words that lists show for states whose names are longer. */
const WORDS: Readonly<Record<string, readonly State[]>> = {
  asks: ["input_required", "auth_required"],
  waits: ["awaiting_children"],
};
const STATE_WORDS = [...STATES, ...Object.keys(WORDS)];

function states(text: string): State[] {
  return text.split(",").flatMap((word): readonly State[] => {
    const state = STATES.find((one) => one === word);
    if (state !== undefined) return [state];
    if (Object.hasOwn(WORDS, word)) return WORDS[word] ?? [];
    const known = `A state is one of ${STATE_WORDS.join(", ")}; several are separated by commas.`;
    throw new InvalidArgumentError(`${didYouMean(word, STATE_WORDS)} ${known}`.trim());
  });
}
const DEFAULT_LIMIT = 20;

const ABOUT = `
The lines fit the terminal, or 80 columns without one. The short ids are accepted by every command; --wide shows whole
ids, local times and whole tasks.

With --json, it prints one delegation per line, and {"next_cursor": "…"} on stderr if there are more. With
--tree, the oldest delegation comes first, and in JSON each has a depth, which is 0 for the root of a tree.`;

export function addList(program: Command, { host }: Cli): void {
  const command = program
    .command("list")
    .description("list the delegations that you may see, newest first")
    .option("--target <agent>", "only work for this agent", agentName)
    .option(
      "--delegator <principal>",
      "only work from this principal, for example caller:ci",
      valid(principalSchema),
    )
    .option("--context <id>", "only this conversation", valid(contextIdSchema))
    .addOption(
      new Option("--state <states>", "only in these states, separated by commas")
        .choices(STATE_WORDS)
        .argParser(separated(STATE_WORDS, states)),
    )
    .option("--since <instant>", `only created at or after this time, ${INSTANT_EXAMPLE}`, instant)
    .option("--until <instant>", "only created before this time", instant)
    .option("--ended-since <instant>", "only ended at or after this time", instant)
    .option("-q, --query <text>", "only with this text in the first 100 bytes of the task, ignoring case")
    .option(
      "--error-code <code>",
      "only those that ended with this error: attempts_exhausted, command_failed ('errand work'), or any other of docs/errors.md",
      errorCode,
    )
    .option(
      "--limit <n>",
      `maximum number of delegations (default ${DEFAULT_LIMIT})`,
      wholeBetween(1, 1_000_000),
    )
    .option("--cursor <cursor>", "continue after an earlier list")
    .option("--all", "no maximum")
    .option(
      "--tree [id]",
      "show each with its children, as a tree; with an id, only the tree of that delegation",
      delegationId,
    );
  addTableOptions(command, COLUMNS)
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        "errand list --target scout --state working,input_required",
        "errand list --since 2026-01-31 -q deploy",
        "errand list -o id,state,age,task",
        "errand list --state submitted -o id | xargs -r -n 1 errand cancel",
        "errand list --tree dlg_…",
        "errand list --state failed --error-code attempts_exhausted --all --json | jq -r .id",
      ),
    )
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<ListOptions>();
      if (options.all && options.limit !== undefined) throw usageError("give either --all or --limit");
      if (typeof options.tree === "string" && FILTERS.some((name) => options[name] !== undefined)) {
        throw usageError("--tree with an id cannot be combined with filters");
      }
      const { since, until } = options;
      if (since !== undefined && until !== undefined && Date.parse(until) < Date.parse(since)) {
        throw usageError(`--until (${until}) is before --since (${since})`, "Swap or correct them.");
      }
      const connection = await connectToRead(host, options);
      const show = options.tree === undefined ? printList : printTrees;
      await show(host, connection, options);
    });
}

function filterOf(options: ListOptions): DelegationFilter {
  const { target, delegator, context, state, since, until, query: q, errorCode: error_code } = options;
  const ended_since = options.endedSince;
  return { target, delegator, context_id: context, state, since, until, ended_since, q, error_code };
}

/** The pages of the list, up to the limit. */
function pagesOf(connection: ConnectionOptions, options: ListOptions, signal: AbortSignal) {
  const filter = filterOf(options);
  const http = new Http(connection);
  return pagesUpTo({
    wanted: options.all ? Number.POSITIVE_INFINITY : (options.limit ?? DEFAULT_LIMIT),
    cursor: options.cursor,
    read: (page) => listPage(http, { ...filter, ...page }, signal),
    countOf: ({ delegations }) => delegations.length,
  });
}

const OR_ALL = ", or --all.";

async function printList(host: CliHost, connection: ConnectionOptions, options: ListOptions): Promise<void> {
  let cursor: string | null = null;
  let count = 0;
  const table = new ListTable(host, COLUMNS, options);
  await interruptible(async (signal) => {
    for await (const { delegations, next_cursor } of pagesOf(connection, options, signal)) {
      if (options.json) for (const one of delegations) await printJson(host, one);
      else if (delegations.length > 0) await table.print(delegationRows(delegations));
      count += delegations.length;
      cursor = next_cursor;
    }
  });
  await noteMore(host, cursor, options.json, OR_ALL);
  const { errorCode, json } = options;
  if (count > 0 || cursor !== null || json) return;
  const { error_code: _none, ...filter } = filterOf(options);
  const unknown = await unknownAgentNote(options.target, connection);
  if (unknown !== undefined) await note(host, unknown);
  else if (errorCode !== undefined) await noteKnownCodes(host, connection, errorCode, filter);
  else if (FILTERS.some((name) => options[name] !== undefined)) await note(host, "no delegations match.");
  else await note(host, "no delegations yet.");
}

/** For an empty list: says that the agent does not exist, and suggests a similar name. */
async function unknownAgentNote(
  target: string | undefined,
  connection: ConnectionOptions,
): Promise<string | undefined> {
  if (target === undefined) return undefined;
  const quick = { ...connection, retryForMs: 0 };
  const { Admin } = await import("../../client/admin.ts");
  const isUnknown = await new Admin(quick).getAgent(target).then(
    () => false,
    (error: unknown) => error instanceof ErrandApiError && error.status === 404,
  );
  if (!isUnknown) return undefined;
  const similar = await similarAgent(target, quick).catch(() => undefined);
  return `there is no agent ${target}.${similar === undefined ? "" : ` Did you mean ${similar}?`}`;
}

/** Prints the tree of each listed delegation, the oldest first. A delegation that an earlier tree contains is skipped. */
async function printTrees(host: CliHost, connection: ConnectionOptions, options: ListOptions): Promise<void> {
  const { tree } = options;
  const { Delegator } = await import("../../client/delegator.ts");
  const delegator = new Delegator(connection);
  const { json } = options;
  const table = json ? undefined : new ListTable(host, COLUMNS, options);
  if (typeof tree === "string") {
    await interruptible((signal) => printTree(host, delegator, tree, { table, signal }));
    return;
  }
  let cursor: string | null = null;
  await interruptible(async (signal) => {
    const found: string[] = [];
    for await (const { delegations, next_cursor } of pagesOf(connection, options, signal)) {
      found.push(...delegations.map(({ id }) => id));
      cursor = next_cursor;
    }
    const shown = new Set<string>();
    // A parent is older than its children, so its tree comes first.
    for (const id of found.reverse()) {
      if (shown.has(id)) continue;
      for (const one of await printTree(host, delegator, id, { table, signal })) shown.add(one);
    }
  });
  await noteMore(host, cursor, options.json, OR_ALL);
}
