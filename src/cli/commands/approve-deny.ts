/**
 * `errand approve`, `deny`: yes or no to the question of one delegation or of many. Limit: only questions that a yes or
 * no answers.
 */
import type { Command } from "commander";
import { Delegator } from "../../client/delegator.ts";
import { contextIdSchema, principalSchema } from "../../schema/values.ts";
import { agentName, type Cli, connect, delegationIds, examples, valid } from "../context.ts";
import { usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { decideMany } from "../many/decide.ts";
import { type DecideOptions, DONE, questionFor } from "../open-question.ts";
import { print, printJson } from "../show/output.ts";
import type { Decision } from "../show/questions.ts";
import { INTERRUPT, inWords, jsonOption } from "./answer.ts";

const ABOUT = `
It refuses a question that needs more than a yes or no: several requests at once, other options, data or a credential.
Answer that with 'errand answer'.

With several ids, or with --all, it shows each question and asks for confirmation. Without a terminal, or with --json,
it needs --yes. An id that is refused does not stop the others, but the exit code is then not 0. --all skips
questions that need more than a yes or no.

With --json each delegation is one line: {"id", "outcome": "sent", "delegation"}, or {"id", "outcome", "error"} with the
outcome "not_sent", "refused" (by the broker) or "unknown" (no answer came).`;

export function addApprove(program: Command, cli: Cli): void {
  addDecision(program, cli, "approve", "say yes to what delegations ask; they continue before new work", [
    "errand approve dlg_…",
    'errand approve dlg_… --text "but only on staging"',
    "errand approve --all --target deployer",
  ]);
}

export function addDeny(program: Command, cli: Cli): void {
  addDecision(
    program,
    cli,
    "deny",
    "say no to what delegations ask; their agents continue with that answer",
    [
      "errand deny dlg_…",
      'errand deny dlg_… --text "not on a Friday"',
      "errand deny --all --delegator caller:ci",
    ],
  );
}

function addDecision(
  program: Command,
  cli: Cli,
  decision: Decision,
  description: string,
  lines: readonly string[],
): void {
  program
    .command(decision)
    .description(description)
    .argument("[ids...]", "the delegations, dlg_…", delegationIds)
    .option("--all", "all delegations that you may see and that ask for a yes or no")
    .option("--target <agent>", "with --all: only work for this agent", agentName)
    .option("--delegator <principal>", "with --all: only work from this principal", valid(principalSchema))
    .option("--context <id>", "with --all: only this conversation", valid(contextIdSchema))
    .option("--yes", "do not ask for confirmation")
    .option("--text <text>", "why, or under what condition; the agent gets it")
    .option("--data <json>", "any JSON, for the agent", jsonOption)
    .option("--interrupt <id>", INTERRUPT)
    .addHelpText("after", ABOUT)
    .addHelpText("after", examples(...lines))
    .action(async (ids: readonly string[], _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<DecideOptions>();
      check(ids, options);
      const [first, second] = ids;
      if (first !== undefined && second === undefined) await decideOne(cli.host, decision, first, options);
      else await decideMany(cli, decision, ids, options);
    });
}

function check(ids: readonly string[], options: DecideOptions): void {
  const { text, all, target, delegator, context, interrupt } = options;
  if (text !== undefined && text.trim() === "") throw usageError("the text is empty", "Leave --text out.");
  if (all && ids.length > 0) throw usageError("give either ids or --all");
  if (!all && ids.length === 0) throw usageError("there is no id", "Pass one or more ids, or --all.");
  if (!all && (target ?? delegator ?? context) !== undefined)
    throw usageError("--target, --delegator and --context go with --all");
  if (interrupt !== undefined && ids.length !== 1) throw usageError("--interrupt goes with one id");
}

async function decideOne(host: CliHost, decision: Decision, id: string, options: DecideOptions) {
  const { text, data, interrupt: named, json } = options;
  const delegator = new Delegator(await connect(host, options));
  const read = await delegator.get(id);
  // If the named question is not open, the broker decides whether this repeats its answer.
  const isOpen = named === undefined || read.interrupt?.id === named;
  const interruptId = isOpen ? questionFor(decision, read, data !== undefined).id : named;
  const delegation = await delegator[decision](id, { text, data, interruptId }).catch(inWords(delegator, id));
  await (json ? printJson(host, delegation) : print(host, `${DONE[decision]} ${id}`));
}
