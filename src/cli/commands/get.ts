/** `errand get`: shows a delegation, its reply or its artifacts, now or when it finishes. */
import type { Command } from "commander";
import { Delegator } from "../../client/delegator.ts";
import type { ConnectionOptions } from "../../client/http.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { type ArtifactOptions, checkArtifactOptions, saveArtifacts } from "../artifacts/artifacts.ts";
import { type Cli, connect, connectToRead, examples, type GlobalOptions } from "../context.ts";
import { isCounted } from "../counted.ts";
import { usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { DELEGATION, delegationId } from "../input/arguments.ts";
import { duration } from "../input/duration.ts";
import { describe } from "../show/delegation.ts";
import { historyRows } from "../show/history.ts";
import { plainText, print, printJson, withCommand } from "../show/output.ts";
import { printReply } from "../show/reply.ts";
import { sendersOf, stateRows, voidVotesOf, whyWaits } from "../show/state-details.ts";
import { wrapWidth } from "../show/terminal-width.ts";
import { wrapRows } from "../show/text.ts";
import { requireCompleted, waitFor } from "../wait.ts";

interface GetOptions extends GlobalOptions, ArtifactOptions {
  readonly wait?: boolean;
  readonly timeout?: number;
  readonly reply?: boolean;
  readonly history?: boolean;
}

export function addGet(program: Command, { host }: Cli): void {
  program
    .command("get")
    .description("show a delegation's state, progress and result")
    .argument("<id>", DELEGATION, delegationId)
    .option("--wait", "wait until it finishes; if it fails, the exit code is that of its error")
    .option("--timeout <duration>", "with --wait: stop waiting after this time, with exit code 124", duration)
    .option("--reply", "print only the reply, as 'errand delegate --wait' does")
    .option("--history", "print all follow-ups, questions and answers, with author and time")
    .option("--artifact <name>", "print the artifact of this name or id, or write it to the file of --output")
    .option("-o, --output <path>", "with --artifact: the file to write; '-' is stdout")
    .option("--artifacts <folder>", "write all artifacts to files in this folder")
    .option("--force", "replace existing files")
    .addHelpText(
      "after",
      examples(
        "errand get dlg_… --wait",
        "errand get dlg_… --history",
        "errand get dlg_… --reply > output.bin",
        "errand get dlg_… --artifact report.pdf -o report.pdf",
        "errand get dlg_… --wait --artifacts out/",
        "errand get dlg_… --json | jq .state",
        "errand get dlg_… --json | jq .why  # of a queued one, why no worker has it",
      ),
    )
    .action(async (id: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GetOptions>();
      if (options.timeout !== undefined && !options.wait) throw usageError("--timeout requires --wait");
      checkArtifactOptions(options);
      const views = [options.reply, options.history, options.artifact ?? options.artifacts];
      if (views.filter((view) => view !== undefined).length > 1)
        throw usageError("give only one of --reply, --history, --artifact and --artifacts");
      const connection = await (options.wait ? connect : connectToRead)(host, options);
      const delegation = options.wait
        ? await waitFor({ host, connection, id, timeoutSeconds: options.timeout, json: options.json })
        : await new Delegator(connection).get(id);
      if (options.artifact !== undefined || options.artifacts !== undefined)
        await saveArtifacts(host, new Delegator(connection), delegation, options);
      else if (options.history) await printHistory(host, connection, delegation, options.json);
      else if (options.json) {
        const why = await whyWaits(connection, delegation);
        await printJson(host, { ...delegation, ...(why !== null && { why }) });
      } else if (options.reply) await printReply(host, delegation);
      else {
        const details = await stateRows(connection, delegation);
        const isVoid = await voidVotesOf(connection, delegation);
        const shown = {
          columns: wrapWidth(host),
          isCounted: await isCounted(connection, delegation),
          isVoid,
        };
        const [rows = "", ...reply] = describe(delegation, details, shown).split("\n\n");
        // The reply, after an empty line, keeps its lines.
        const text = [withCommand(host, rows), ...reply].join("\n\n");
        await print(host, host.isTty.stdout ? plainText(text) : text);
      }
      if (options.wait || options.reply) requireCompleted(delegation);
    });
}

/** With --json, one complete message per line. */
async function printHistory(
  host: CliHost,
  connection: ConnectionOptions,
  delegation: Delegation,
  json = false,
): Promise<void> {
  const { history } = delegation;
  if (json) for (const message of history) await printJson(host, message);
  else if (history.length === 0) await print(host, "no follow-ups, questions or answers yet");
  else {
    const senders = await sendersOf(connection, delegation);
    const isVoid = await voidVotesOf(connection, delegation);
    const rows = historyRows(history, Number.POSITIVE_INFINITY, { senders, isVoid });
    await print(host, wrapRows(rows, wrapWidth(host)));
  }
}
