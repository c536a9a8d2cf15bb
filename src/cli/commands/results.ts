/**
 * `errand results`: the caller's inbox. Limit: it keeps no cursor of its own; the one it prints is to be given back.
 */
import type { Command } from "commander";
import { localError } from "../../client/errors.ts";
import { Pages, type ResultsPage } from "../../client/pages.ts";
import { textOf } from "../../schema/a2a.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { type Cli, connect, examples, type GlobalOptions, positive, wholeBetween } from "../context.ts";
import { InOurWords, usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { note, oneLine, type Painter, painter, print, printJson } from "../show/output.ts";
import { howToAnswer, questionText } from "../show/questions.ts";
import { interruptible } from "../signals.ts";

interface ResultsOptions extends GlobalOptions {
  readonly after?: string;
  readonly wait?: number;
  readonly follow?: boolean;
  readonly limit?: number;
}

/** Below the idle cut of common proxies. */
const HOLD_SECONDS = 25;
const STATE_WIDTH = "input_required".length;

const ABOUT = `
What was printed is not remembered: give the cursor that is printed at the end to --after the next time. With
--json, one delegation a line, and behind each page a line {"cursor": "…"}.`;

export function addResults(program: Command, { host }: Cli): void {
  program
    .command("results")
    .description("your inbox: what you delegated that finished or asks something, oldest first")
    .option("--after <cursor>", "only what came behind this cursor (default: from the beginning)")
    .option("--wait <seconds>", "wait so long for something; nothing came: exit code 124", positive)
    .option("--follow", "go on until Ctrl-C")
    .option("--limit <n>", "how many at most (default 100)", wholeBetween(1, 1000))
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        "errand results",
        "errand results --after 1754-0 --wait 600 --json",
        "errand results --follow",
      ),
    )
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<ResultsOptions>();
      const { follow, wait } = options;
      if (follow && (wait ?? options.limit) !== undefined) {
        throw usageError("--follow goes on by itself: give it neither --wait nor --limit");
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
  await show(host, page, json);
  if (!json) await note(host, `the next ones: errand results --after ${page.cursor}`);
  if (wait > 0 && page.results.length === 0) throw nothingCame(wait, page.cursor);
}

async function followAll(host: CliHost, options: ResultsOptions, signal: AbortSignal): Promise<void> {
  const connection = await connect(host, options);
  // As `watch`: an outage is waited out.
  const pages = new Pages({ ...connection, retryForMs: Number.POSITIVE_INFINITY });
  let { after } = options;
  try {
    for (;;) {
      const page = await pages.results({ after, waitSeconds: HOLD_SECONDS }, signal);
      if (page.results.length > 0) await show(host, page, options.json);
      after = page.cursor;
    }
  } finally {
    if (!options.json && after !== undefined) {
      await note(host, `go on with: errand results --follow --after ${after}`).catch(() => undefined);
    }
  }
}

async function show(host: CliHost, { results, cursor }: ResultsPage, json = false): Promise<void> {
  const paint = painter(host, "stdout");
  for (const one of results) await (json ? printJson(host, one) : print(host, asLine(one, paint)));
  if (json) return printJson(host, { cursor });
  for (const one of results) {
    if (one.interrupt) await note(host, `${one.id} asks: answer with ${howToAnswer(one)}.`);
  }
}

function asLine(delegation: Delegation, paint: Painter): string {
  const { id, state, target, finished_at, updated_at } = delegation;
  const colour = state === "completed" ? paint.green : state.endsWith("_required") ? paint.yellow : paint.red;
  const at = (finished_at ?? updated_at).slice(0, 19);
  return [paint.dim(`${at}Z`), id, colour(state.padEnd(STATE_WIDTH)), target, said(delegation)].join("  ");
}

function said({ interrupt, error, reply }: Delegation): string {
  const asked = interrupt ? questionText(interrupt) : undefined;
  const text = asked ?? error?.message ?? (reply ? textOf(reply) : "");
  return text === "" ? "" : `"${oneLine(text, 80)}"`;
}

function nothingCame(wait: number, cursor: string) {
  const { problem } = localError({
    code: "wait_ran_out",
    category: "TIMEOUT",
    detail: `nothing came in ${wait} s`,
    recovery: `Wait again: 'errand results --after ${cursor} --wait <seconds>'.`,
    retryable: true,
    details: { cursor },
  });
  return new InOurWords(problem);
}
