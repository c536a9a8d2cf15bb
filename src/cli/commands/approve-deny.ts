/**
 * `errand approve` and `errand deny`: answer the question of one delegation or of many with a decision. Limit: only
 * questions that a yes or no can answer.
 */
import type { Command } from "commander";
import { budgetText } from "../../client/budget-text.ts";
import { Delegator } from "../../client/delegator.ts";
import { isBudgetQuestion } from "../../schema/budget-question.ts";
import type { Decision } from "../../schema/decision.ts";
import { contextIdSchema, principalSchema } from "../../schema/values.ts";
import { decideMany, PAST } from "../bulk/decide.ts";
import type { DecideOptions } from "../bulk/questions.ts";
import { type Cli, connect, examples } from "../context.ts";
import { usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { agentName, DELEGATIONS, delegationIds, json, valid } from "../input/arguments.ts";
import {
  asProposedOption,
  asVotedOption,
  confirmVoted,
  voidsOthers,
  votedAnswer,
} from "../input/as-voted.ts";
import { confirmVoiding, noteVoided, withoutOwn } from "../input/voids.ts";
import { explainRefusal, INTERRUPT, questionFor } from "../open-question.ts";
import { note, print, printJson } from "../show/output.ts";
import { requestLine } from "../show/questions.ts";
import { sentText } from "../show/votes.ts";

const ABOUT = `
This command answers only questions for which a yes or no is enough. It refuses a question that has several requests,
offers other options, asks for a credential, or asks for data while --data is not given: use 'errand answer' for those.

With several ids, or with --all, it shows each question and asks for confirmation. Without a terminal, or with --json,
--yes is required. A refused or unknown id does not stop the others, but makes the exit code nonzero. --all answers
questions that propose an action or have the decision among their options; it skips all others.

Where the agent needs the approvals of several people, the question stays open until there are enough. If others have
approved something else, such as changed arguments, --as-voted approves the same. An approval with --data that voids those of
others asks for confirmation, or requires --yes. --all skips the questions that you have
approved, and those for which your approval does not count.

With --json, it prints one line per delegation: {"id", "outcome": "sent", "delegation"}, or {"id", "outcome", "error"},
where outcome is "not_sent", "refused" (by the broker) or "unknown" (no response).`;

export function addApprove(program: Command, cli: Cli): void {
  addDecision(
    program,
    cli,
    "approve",
    "answer yes to delegations' questions; they resume ahead of new work",
    "the data that the question asks for, or other arguments for an editable action",
    [
      "errand approve dlg_…",
      'errand approve dlg_… --text "but only on staging"',
      "errand approve --all --target deployer",
    ],
  );
}

export function addDeny(program: Command, cli: Cli): void {
  addDecision(
    program,
    cli,
    "deny",
    "answer no to delegations' questions; they resume with that answer",
    "the data that the question asks for",
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
  data: string,
  lines: readonly string[],
): void {
  const made = program
    .command(decision)
    .description(description)
    .argument("[ids...]", DELEGATIONS, delegationIds)
    .option("--all", "all open yes-or-no questions that you may see")
    .option("--target <agent>", "with --all: only work for this agent", agentName)
    .option("--delegator <principal>", "with --all: only work from this principal", valid(principalSchema))
    .option("--context <id>", "with --all: only this conversation", valid(contextIdSchema))
    .option("--yes", "do not ask for confirmation")
    .option("--text <text>", "a reason or condition for the agent")
    .option("--data <json>", data, json)
    .option("--interrupt <id>", INTERRUPT);
  if (decision === "approve") made.addOption(asVotedOption()).addOption(asProposedOption());
  made
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
  const { text, all, target, delegator, context, interrupt, asVoted, asProposed, data } = options;
  if ([asVoted, asProposed, data].filter((one) => one !== undefined).length > 1)
    throw usageError("give only one of --as-voted, --as-proposed and --data");
  if (text !== undefined && text.trim() === "") throw usageError("the text is empty", "Omit --text.");
  if (all && ids.length > 0) throw usageError("give either ids or --all");
  if (!all && ids.length === 0) throw usageError("no delegation id given", "Pass one or more ids, or --all.");
  if (!all && (target ?? delegator ?? context) !== undefined)
    throw usageError("--target, --delegator and --context require --all");
  if (interrupt !== undefined && ids.length !== 1) throw usageError("--interrupt requires exactly one id");
}

async function decideOne(host: CliHost, decision: Decision, id: string, options: DecideOptions) {
  const { text, data, interrupt: named } = options;
  const connection = await connect(host, options);
  const delegator = new Delegator(connection);
  const read = await delegator.get(id);
  // A named question that is no longer open may have this same answer already; the broker checks that.
  const isOpen = named === undefined || read.interrupt?.id === named;
  const { interrupt } = read;
  const isAsked = interrupt !== null && isOpen;
  let { asVoted } = options;
  if (isAsked && !asVoted) questionFor(decision, read, data !== undefined);
  const others = isAsked ? await withoutOwn(connection, interrupt) : null;
  if (others && voidsOthers(decision, others, options)) {
    await confirmVoted(host, read, others);
    asVoted = true;
  }
  if (others && !asVoted && !options.asProposed) {
    const asking = { delegation: read, interrupt: others, yes: options.yes };
    await confirmVoiding(host, asking, { decision, ...(data !== undefined && { data }) });
  }
  const interruptId =
    isAsked && asVoted ? interrupt.id : isOpen ? questionFor(decision, read, data !== undefined).id : named;
  const delegation = await (isAsked && asVoted
    ? delegator.answer(id, interrupt.id, votedAnswer(interrupt, { text }))
    : delegator[decision](id, { text, data, interruptId })
  ).catch(explainRefusal(delegator, id));
  if (options.json) return printJson(host, delegation);
  await print(host, sentText(PAST[decision], delegation, interruptId));
  await noteVoided(host, interrupt, delegation);
  const { budget } = delegation;
  if (budget?.limit && decision === "approve" && isBudgetQuestion(interruptId))
    await note(host, `used of the new budget: ${budgetText(budget)}`);
  // It may be another question than the person has read elsewhere.
  const [request] = read.interrupt?.id === interruptId ? read.interrupt.requests : [];
  if (request && host.isTty.stderr) await note(host, `the question was: ${requestLine(request, true)}`);
}
