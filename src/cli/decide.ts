/**
 * `errand approve`, `deny`: yes or no to the questions of one delegation or many. Limit: many are shown before anything
 * is sent, and a question that changed since it was shown is refused.
 */
import { createInterface } from "node:readline";
import type { Command } from "commander";
import { Delegator } from "../client/delegator.ts";
import { ErrandApiError, localError } from "../client/errors.ts";
import { Pages } from "../client/pages.ts";
import type { Delegation, Interrupt } from "../schema/delegation.ts";
import { contextIdSchema, principalSchema } from "../schema/values.ts";
import { INTERRUPT, inWords, jsonOption } from "./answer.ts";
import {
  agentName,
  type Cli,
  connect,
  delegationIds,
  examples,
  type GlobalOptions,
  valid,
} from "./context.ts";
import { InOurWords, usageError } from "./failure.ts";
import type { CliHost } from "./host.ts";
import { complain, note, oneLine, painter, print, printJson, write } from "./output.ts";
import { requestLine } from "./questions.ts";
import { interruptible } from "./signals.ts";

type Decision = "approve" | "deny";
const DONE = { approve: "approved", deny: "denied" } as const;

interface DecideOptions extends GlobalOptions {
  readonly text?: string;
  readonly data?: unknown;
  readonly interrupt?: string;
  readonly all?: boolean;
  readonly target?: string;
  readonly delegator?: string;
  readonly context?: string;
  readonly yes?: boolean;
}

const ABOUT = `
With several ids, or with --all, it shows each question and asks for confirmation. Without a terminal, or with --json,
it needs --yes. --all skips questions that a yes or no does not answer: several requests at once, other options,
credentials.`;

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
  { host }: Cli,
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
      if (first !== undefined && second === undefined) await decideOne(host, decision, first, options);
      else await decideMany(host, decision, ids, options);
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
  const { text, data, interrupt, json } = options;
  const delegator = new Delegator(await connect(host, options));
  const how = { text, data, interruptId: interrupt };
  const delegation = await delegator[decision](id, how).catch(inWords(delegator, id));
  await (json ? printJson(host, delegation) : print(host, `${DONE[decision]} ${id}`));
}

interface Asked {
  readonly delegation: Delegation;
  readonly interrupt: Interrupt;
}

async function decideMany(
  host: CliHost,
  decision: Decision,
  ids: readonly string[],
  options: DecideOptions,
): Promise<void> {
  const isTerminal = host.isTty.stdin && host.isTty.stderr && !options.json;
  if (!isTerminal && !options.yes)
    throw usageError(
      "deciding about several delegations needs --yes when there is no terminal",
      "Look at them with 'errand list --state input_required', then pass their ids and --yes.",
    );
  const connection = await connect(host, options);
  const delegator = new Delegator(connection);
  await interruptible(async (signal) => {
    const found: Delegation[] = [];
    if (options.all) found.push(...(await allAsking(new Pages(connection), decision, options, signal)));
    else for (const id of new Set(ids)) found.push(await delegator.get(id, { signal }));
    const asked = found.flatMap((delegation) => {
      const { interrupt } = delegation;
      return interrupt?.requests.length === 1 ? [{ delegation, interrupt }] : [];
    });
    const others = found.filter((one) => !asked.some(({ delegation }) => delegation === one));
    if (!options.json) await show(host, asked, others);
    if (asked.length === 0) {
      if (!options.json) await note(host, `nothing to ${decision}.`);
    } else if (options.yes || (await confirmed(host, decision, asked.length))) {
      await send(host, delegator, decision, asked, options);
    } else {
      throw usageError("not confirmed", "Nothing was sent.");
    }
  });
}

async function allAsking(
  pages: Pages,
  decision: Decision,
  { target, delegator, context: context_id }: DecideOptions,
  signal: AbortSignal,
): Promise<Delegation[]> {
  const found: Delegation[] = [];
  let cursor: string | null | undefined;
  do {
    const query = { target, delegator, context_id, state: "input_required" as const, limit: 100 };
    const page = await pages.list({ ...query, cursor: cursor ?? undefined }, signal);
    found.push(...page.delegations.filter(({ interrupt }) => takes(interrupt, decision)));
    cursor = page.next_cursor;
  } while (cursor !== null);
  // The oldest first.
  return found.reverse();
}

/** Whether a yes or no answers the question. */
function takes(interrupt: Interrupt | null, decision: Decision): boolean {
  const [first, second] = interrupt?.requests ?? [];
  if (first === undefined || second !== undefined) return false;
  const { options = [] } = first;
  return options.length === 0 || options.includes(decision);
}

async function show(host: CliHost, asked: readonly Asked[], others: readonly Delegation[]): Promise<void> {
  const { bold, dim } = painter(host, "stderr");
  const texts = asked.map(({ delegation: { id, target, delegator, task_preview }, interrupt }) => {
    const [request] = interrupt.requests;
    const kind = interrupt.kind === "auth" ? "(credential) " : "";
    const question = request ? kind + requestLine(request, true) : "";
    return `${bold(question)}\n  ${dim(id)}  ${oneLine(target)}, for ${oneLine(delegator)}: ${oneLine(task_preview, 100)}\n`;
  });
  await write(host.stderr, texts.join(""));
  for (const { id, state, interrupt } of others) {
    const why = interrupt === null ? `it is ${state}` : "it asks several things at once";
    await note(host, `left out ${id}: ${why}. See 'errand get ${id}'.`);
  }
}

async function confirmed(host: CliHost, decision: Decision, count: number): Promise<boolean> {
  const verb = decision === "approve" ? "Approve" : "Deny";
  await write(host.stderr, `${verb} ${count === 1 ? "this" : `these ${count}`}? [y/N] `);
  const reader = createInterface({ input: host.stdin, terminal: false });
  try {
    for await (const line of reader) return /^\s*y(es)?\s*$/i.test(line);
    return false;
  } finally {
    reader.close();
  }
}

/** Sends each answer to the question that was shown. A refusal does not stop the others; a broker that is away does. */
async function send(
  host: CliHost,
  delegator: Delegator,
  decision: Decision,
  asked: readonly Asked[],
  { text, data, json }: DecideOptions,
): Promise<void> {
  let refused = 0;
  for (const { delegation, interrupt } of asked) {
    const { id } = delegation;
    try {
      const how = { text, data, interruptId: interrupt.id };
      const decided = await delegator[decision](id, how).catch(inWords(delegator, id));
      await (json ? printJson(host, decided) : print(host, `${DONE[decision]} ${id}`));
    } catch (error) {
      if (!(error instanceof ErrandApiError) || !["PROTOCOL", "UPSTREAM"].includes(error.category))
        throw error;
      refused += 1;
      await complain(host, error, json ?? false);
    }
  }
  if (refused === 0) return;
  const { problem } = localError({
    code: "interrupt_not_open",
    category: "PROTOCOL",
    detail: `${refused} of ${asked.length} could not be ${DONE[decision]}`,
    recovery: "The lines above say why; the other answers were sent.",
  });
  throw new InOurWords(problem);
}
