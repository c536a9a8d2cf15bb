/**
 * `errand results`: lists the delegator's results. With --new it remembers the cursor on this machine; otherwise it
 * stores none.
 */
import type { Command } from "commander";
import { Admin } from "../../client/admin.ts";
import type { ConnectionOptions } from "../../client/http.ts";
import { Pages, type ResultsPage } from "../../client/pages.ts";
import { durationText } from "../../client/words.ts";
import { type Cli, connect, examples } from "../context.ts";
import { cliError, usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { wholeBetween } from "../input/arguments.ts";
import { duration } from "../input/duration.ts";
import { type KeptText, keptText } from "../kept-text.ts";
import { noteHowToAnswer } from "../show/answer-notes.ts";
import { addTableOptions, ListTable, type TableOptions } from "../show/list-table.ts";
import { note, printJson } from "../show/output.ts";
import { RESULT_COLUMNS, type ResultRow, resultRows } from "../show/result-columns.ts";
import { interruptible } from "../signals.ts";

interface ResultsOptions extends TableOptions {
  readonly after?: string | undefined;
  readonly new?: boolean;
  readonly wait?: number;
  readonly follow?: boolean;
  readonly limit?: number;
}

/** Below the idle timeout of common proxies. */
const HOLD_SECONDS = 25;

const ABOUT = `
These are the results of what your token's principal delegated. 'errand inbox' shows the open questions that you may
answer, also those of others.

The broker does not track what you have read. --new does, in ~/.local/state/errand on this machine, for each broker and
principal; a program passes the cursor that is printed at the end to --after next time. With --json, it prints one
delegation per line, and {"cursor": "…"} after each page.`;

export function addResults(program: Command, { host }: Cli): void {
  const command = program
    .command("results")
    .description("list your delegations that finished or ask a question, oldest first")
    .option("--after <cursor>", "only those after this cursor (default: from the beginning)")
    .option("--new", "only those since the last 'errand results --new' on this machine")
    .option("--wait <duration>", "wait this long for a result; without one, exit with code 124", duration)
    .option("--follow", "print new ones until Ctrl-C")
    .option("--limit <n>", "maximum number of delegations (default 100)", wholeBetween(1, 1000));
  addTableOptions(command, RESULT_COLUMNS)
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        "errand results",
        "errand results --new --wait 10m",
        "errand results --after 1754-0 --wait 10m --json",
        "errand results --follow",
      ),
    )
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<ResultsOptions>();
      const { follow, wait } = options;
      if (follow && (wait ?? options.limit) !== undefined) {
        throw usageError("--follow cannot be combined with --wait or --limit");
      }
      if (options.new && options.after !== undefined) throw usageError("give either --new or --after");
      const connection = await connect(host, options);
      const seen = options.new ? await seenBy(host, connection) : undefined;
      const after = seen ? await seen.read() : options.after;
      const show = follow ? followAll : onePage;
      await interruptible((signal) => show(host, connection, { ...options, after }, seen, signal));
    });
}

/** The cursor up to which this principal has seen its results. */
async function seenBy(host: CliHost, connection: ConnectionOptions): Promise<KeptText> {
  const { principal } = await new Admin(connection).status();
  return keptText(host.childEnv.XDG_STATE_HOME, "results", [connection.url ?? "", principal], CURSOR);
}
const CURSOR = /^[\w.:~-]{1,10000}$/;

async function onePage(
  host: CliHost,
  connection: ConnectionOptions,
  options: ResultsOptions,
  seen: KeptText | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { after, wait = 0, limit, json } = options;
  const pages = new Pages(connection);
  const endsAt = performance.now() + wait * 1000;
  let page: ResultsPage;
  do {
    const left = Math.max(0, (endsAt - performance.now()) / 1000);
    page = await pages.results({ after, limit, waitSeconds: Math.min(HOLD_SECONDS, left) }, signal);
  } while (page.results.length === 0 && performance.now() < endsAt);
  await show(host, page, new ListTable(host, RESULT_COLUMNS, options), json);
  await seen?.keep(page.cursor);
  const isEmpty = page.results.length === 0;
  if (!json && isEmpty && wait === 0) await note(host, noneText(options));
  if (!json && !seen) await note(host, `next: errand results --after ${page.cursor}`);
  if (wait > 0 && isEmpty) throw waitRanOut(wait, page.cursor, seen !== undefined);
}

function noneText({ after }: ResultsOptions): string {
  if (after !== undefined) return "nothing new.";
  return "no results yet: nothing that you delegated has ended or asks. 'errand inbox' shows the questions that you may answer.";
}

async function followAll(
  host: CliHost,
  connection: ConnectionOptions,
  options: ResultsOptions,
  seen: KeptText | undefined,
  signal: AbortSignal,
): Promise<void> {
  // Retries until Ctrl-C, like `watch`.
  const pages = new Pages({ ...connection, retryForMs: Number.POSITIVE_INFINITY });
  const table = new ListTable(host, RESULT_COLUMNS, options);
  let { after } = options;
  try {
    for (;;) {
      const page = await pages.results({ after, waitSeconds: HOLD_SECONDS }, signal);
      if (page.results.length > 0) await show(host, page, table, options.json);
      after = page.cursor;
      await seen?.keep(after);
    }
  } finally {
    if (!options.json && !seen && after !== undefined) {
      await note(host, `continue with: errand results --follow --after ${after}`).catch(() => undefined);
    }
  }
}

async function show(
  host: CliHost,
  { results, cursor }: ResultsPage,
  table: ListTable<ResultRow>,
  json = false,
): Promise<void> {
  if (json) {
    for (const one of results) await printJson(host, one);
    return printJson(host, { cursor });
  }
  if (results.length > 0) await table.print(resultRows(results));
  await noteHowToAnswer(host, results);
}

function waitRanOut(wait: number, cursor: string, isNew: boolean) {
  const from = isNew ? "--new" : `--after ${cursor}`;
  return cliError({
    code: "wait_ran_out",
    category: "TIMEOUT",
    detail: `no result within ${durationText(wait * 1000)}`,
    recovery: `Wait again with 'errand results ${from} --wait <duration>'.`,
    retryable: true,
    details: { cursor },
  });
}
