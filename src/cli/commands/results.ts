/**
 * `errand results`: lists the delegator's results. It stores no cursor; pass the printed one to the next call.
 */
import type { Command } from "commander";
import { Pages, type ResultsPage } from "../../client/pages.ts";
import { type Cli, connect, examples } from "../context.ts";
import { cliError, usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { wholeBetween } from "../input/arguments.ts";
import { duration } from "../input/duration.ts";
import { addTableOptions, ListTable, type TableOptions } from "../show/list-table.ts";
import { note, printJson } from "../show/output.ts";
import { howToAnswer } from "../show/questions.ts";
import { RESULT_COLUMNS, type ResultRow, resultRows } from "../show/result-columns.ts";
import { interruptible } from "../signals.ts";

interface ResultsOptions extends TableOptions {
  readonly after?: string;
  readonly wait?: number;
  readonly follow?: boolean;
  readonly limit?: number;
}

/** Below the idle timeout of common proxies. */
const HOLD_SECONDS = 25;

const ABOUT = `
The broker does not track what you have read: pass the cursor printed at the end to --after next time. With --json, it
prints one delegation per line, and {"cursor": "…"} after each page.`;

export function addResults(program: Command, { host }: Cli): void {
  const command = program
    .command("results")
    .description("list your delegations that finished or ask a question, oldest first")
    .option("--after <cursor>", "only those after this cursor (default: from the beginning)")
    .option("--wait <duration>", "wait this long for a result; without one, exit with code 124", duration)
    .option("--follow", "print new ones until Ctrl-C")
    .option("--limit <n>", "maximum number of delegations (default 100)", wholeBetween(1, 1000));
  addTableOptions(command, RESULT_COLUMNS)
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        "errand results",
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
      await interruptible((signal) =>
        follow ? followAll(host, options, signal) : onePage(host, options, signal),
      );
    });
}

async function onePage(host: CliHost, options: ResultsOptions, signal: AbortSignal): Promise<void> {
  const { after, wait = 0, limit, json } = options;
  const pages = new Pages(await connect(host, options));
  const endsAt = performance.now() + wait * 1000;
  let page: ResultsPage;
  do {
    const left = Math.max(0, (endsAt - performance.now()) / 1000);
    page = await pages.results({ after, limit, waitSeconds: Math.min(HOLD_SECONDS, left) }, signal);
  } while (page.results.length === 0 && performance.now() < endsAt);
  await show(host, page, new ListTable(host, RESULT_COLUMNS, options), json);
  if (!json) await note(host, `next: errand results --after ${page.cursor}`);
  if (wait > 0 && page.results.length === 0) throw waitRanOut(wait, page.cursor);
}

async function followAll(host: CliHost, options: ResultsOptions, signal: AbortSignal): Promise<void> {
  const connection = await connect(host, options);
  // Retries until Ctrl-C, like `watch`.
  const pages = new Pages({ ...connection, retryForMs: Number.POSITIVE_INFINITY });
  const table = new ListTable(host, RESULT_COLUMNS, options);
  let { after } = options;
  try {
    for (;;) {
      const page = await pages.results({ after, waitSeconds: HOLD_SECONDS }, signal);
      if (page.results.length > 0) await show(host, page, table, options.json);
      after = page.cursor;
    }
  } finally {
    if (!options.json && after !== undefined) {
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
  for (const one of results) {
    if (one.interrupt) await note(host, `to answer, run ${howToAnswer(one)}.`);
  }
}

function waitRanOut(wait: number, cursor: string) {
  return cliError({
    code: "wait_ran_out",
    category: "TIMEOUT",
    detail: `no result within ${wait} s`,
    recovery: `Wait again with 'errand results --after ${cursor} --wait <duration>'.`,
    retryable: true,
    details: { cursor },
  });
}
