/**
 * `errand approve` and `errand deny` for several delegations: shows all questions, asks for confirmation, then reports
 * the outcome of each. An answer to a question that changed meanwhile is refused. A failure leaves earlier answers in
 * place.
 */
import { Delegator } from "../../client/delegator.ts";
import { ErrandApiError } from "../../client/errors.ts";
import { Pages } from "../../client/pages.ts";
import type { Decision } from "../../schema/decision.ts";
import type { Delegation, Interrupt } from "../../schema/delegation.ts";
import { hasVoted } from "../../schema/vote-text.ts";
import { type Cli, connect, type GlobalOptions } from "../context.ts";
import { readerOf } from "../counted.ts";
import { exitCodeFor, nameDelegation, usageError, worstExitCode } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { type AsVoted, voidsOthers, votedAnswer, wouldVoid } from "../input/as-voted.ts";
import { LineReader } from "../input/line-reader.ts";
import { voidedIn, voidsText, withOthers } from "../input/voids.ts";
import { explainRefusal, questionFor } from "../open-question.ts";
import { QUESTION_STATES } from "../rights.ts";
import { note, oneLine, painter, print, printError, printJson, write } from "../show/output.ts";
import { isYesOrNo, requestLine, whyDecisionIsNotEnough } from "../show/questions.ts";
import { terminalWidth } from "../show/terminal-width.ts";
import { wrapText } from "../show/text.ts";
import { sentText, votesLine } from "../show/votes.ts";
import { interruptible } from "../signals.ts";
import { concernsOne, throwIfUnknown } from "./each-id.ts";

/** The past tense of each decision. */
export const PAST = { approve: "approved", deny: "denied" } as const;

export interface DecideOptions extends GlobalOptions, AsVoted {
  readonly text?: string;
  readonly data?: unknown;
  readonly interrupt?: string;
  readonly all?: boolean;
  readonly target?: string;
  readonly delegator?: string;
  readonly context?: string;
  readonly yes?: boolean;
}

type Reader = () => ReturnType<typeof readerOf>;

/** Only what is shown, because whole delegations may have megabytes. */
interface OpenQuestion {
  readonly delegation: Pick<Delegation, "id" | "target" | "delegator" | "task_preview">;
  readonly interrupt: Interrupt;
  /** It with the approvals of others only. */
  readonly others: Interrupt;
}

const openQuestion = (
  { id, target, delegator, task_preview }: Delegation,
  interrupt: Interrupt,
  others: Interrupt,
): OpenQuestion => ({ delegation: { id, target, delegator, task_preview }, interrupt, others });

type Outcome = "not_sent" | "refused" | "unknown";

/** Prints the outcome of each delegation and collects the errors. */
class Report {
  readonly #host: CliHost;
  readonly #json: boolean;
  readonly errors: ErrandApiError[] = [];
  readonly reported = new Set<string>();

  constructor(host: CliHost, json = false) {
    this.#host = host;
    this.#json = json;
  }

  async sent(decision: Decision, delegation: Delegation): Promise<void> {
    const { id } = delegation;
    this.reported.add(id);
    if (this.#json) await printJson(this.#host, { id, outcome: "sent", delegation });
    else await print(this.#host, sentText(PAST[decision], delegation));
  }

  async failed(id: string, outcome: Outcome, error: ErrandApiError): Promise<void> {
    this.reported.add(id);
    this.errors.push(error);
    if (this.#json) await printJson(this.#host, { id, outcome, error: error.problem });
    else await printError(this.#host, error, false);
  }
}

export async function decideMany(
  { host, end, unknownIds }: Cli,
  decision: Decision,
  given: readonly string[],
  options: DecideOptions,
): Promise<void> {
  const { all, json, yes } = options;
  const isTerminal = host.isTty.stdin && host.isTty.stderr && !json;
  if (!isTerminal && !yes)
    throw usageError(
      "--yes is required to decide several delegations without a terminal",
      "Review them with 'errand inbox', then run this again with --yes.",
    );
  const connection = await connect(host, options);
  const delegator = new Delegator(connection);
  const report = new Report(host, json);
  const ids = [...new Set(given)];
  await interruptible(async (signal) => {
    try {
      let found: ReturnType<typeof readerOf> | undefined;
      // Only for questions with approvals.
      const reader = () => {
        found ??= readerOf(connection);
        return found;
      };
      const { asked, skipped, uncounted } = all
        ? await allQuestions(new Pages(connection), reader, decision, options, signal)
        : {
            asked: await questionsOf(
              delegator,
              reader,
              decision,
              ids,
              { ...options, unknownIds },
              report,
              signal,
            ),
            ...{ skipped: 0, uncounted: 0 },
          };
      if (!json) await show(host, asked, decision, options);
      if (asked.length === 0) {
        if (!json) await note(host, `nothing to ${decision}.`);
      } else if (yes || (await confirmed(host, decision, asked.length, signal))) {
        await send(delegator, decision, asked, options, report, signal);
      } else {
        throw usageError("not confirmed", "Nothing was sent.");
      }
      if (uncounted > 0 && !json)
        await note(host, `left ${uncounted} to others, because your approval does not count.`);
      if (skipped > 0 && !json)
        await note(host, `skipped ${skipped} without '${decision}'; see 'errand inbox'.`);
    } catch (error) {
      if (json && error instanceof ErrandApiError) {
        for (const id of ids) if (!report.reported.has(id)) await report.failed(id, "not_sent", error);
      }
      throw error;
    }
  });
  const { length: failed } = report.errors;
  if (failed > 0 && !json)
    await note(host, `${failed} of ${report.reported.size} were not ${PAST[decision]}.`);
  end(worstExitCode(report.errors.map(exitCodeFor)));
}

async function questionsOf(
  delegator: Delegator,
  reader: Reader,
  decision: Decision,
  ids: readonly string[],
  { unknownIds, ...options }: DecideOptions & Pick<Cli, "unknownIds">,
  report: Report,
  signal: AbortSignal,
): Promise<OpenQuestion[]> {
  const found: OpenQuestion[] = [];
  for (const id of ids) {
    try {
      throwIfUnknown(unknownIds, id);
      const delegation = await delegator.get(id, { signal });
      const interrupt = questionFor(decision, delegation, options.data !== undefined);
      const others = interrupt.votes ? withOthers(interrupt, (await reader()).principal) : interrupt;
      if (voidsOthers(decision, others, options)) throw wouldVoid(delegation, others);
      found.push(openQuestion(delegation, interrupt, others));
    } catch (error) {
      if (!concernsOne(error)) throw error;
      await report.failed(id, "not_sent", nameDelegation(error, id));
    }
  }
  return found;
}

/** All open questions that name the decision as an answer, oldest first, and how many others are open. */
async function allQuestions(
  pages: Pages,
  reader: Reader,
  decision: Decision,
  options: DecideOptions,
  signal: AbortSignal,
): Promise<{ asked: OpenQuestion[]; skipped: number; uncounted: number }> {
  const { target, delegator, context: context_id, data } = options;
  const found: OpenQuestion[] = [];
  let skipped = 0;
  let uncounted = 0;
  let cursor: string | null | undefined;
  do {
    const query = { target, delegator, context_id, state: QUESTION_STATES, limit: 100 };
    const page = await pages.list({ ...query, cursor: cursor ?? undefined }, signal);
    for (const delegation of page.delegations) {
      const { interrupt } = delegation;
      if (interrupt === null) continue;
      const { principal, counted } = interrupt.votes ? await reader() : {};
      const others = principal === undefined ? interrupt : withOthers(interrupt, principal);
      const isFitting =
        interrupt.kind === "input" &&
        isYesOrNo(decision, interrupt) &&
        whyDecisionIsNotEnough(decision, interrupt, data !== undefined) === undefined &&
        !voidsOthers(decision, others, options);
      if (decision === "approve" && counted && principal !== undefined) {
        // It waits for others.
        if (data === undefined && hasVoted(interrupt, principal)) continue;
        await counted.read([delegation]);
        if (isFitting && !counted.isCounted(delegation)) {
          uncounted += 1;
          continue;
        }
      }
      if (isFitting) found.push(openQuestion(delegation, interrupt, others));
      else skipped += 1;
    }
    cursor = page.next_cursor;
  } while (cursor !== null);
  return { asked: found.reverse(), skipped, uncounted };
}

const INDENT = "  ";

async function show(
  host: CliHost,
  asked: readonly OpenQuestion[],
  decision: Decision,
  { data, asVoted }: DecideOptions,
): Promise<void> {
  const { bold, dim } = painter(host, "stderr");
  const width = host.isTty.stderr ? terminalWidth(host, "stderr") : Number.POSITIVE_INFINITY;
  const texts = asked.map(({ delegation: { id, target, delegator, task_preview }, interrupt, others }) => {
    const [request] = interrupt.requests;
    const kind = interrupt.kind === "auth" ? "(credential) " : "";
    const question = request ? kind + requestLine(request, true, Number.POSITIVE_INFINITY) : "";
    const about = `${oneLine(target)}, for ${oneLine(delegator)}: ${oneLine(task_preview, 100)}`;
    const lines = wrapText(`${id} ${about}`, width - INDENT.length, INDENT);
    const answer = { decision, ...(data !== undefined && { data }) };
    const voided = asVoted ? [] : voidedIn(others, answer);
    const votes = voided.length > 0 ? voidsText(others, voided) : votesLine(interrupt);
    const voted = votes === undefined ? "" : `${INDENT}${wrapText(votes, width - INDENT.length, INDENT)}\n`;
    return `${bold(wrapText(question, width))}\n${voted}${INDENT}${lines.replace(id, dim(id))}\n`;
  });
  await write(host.stderr, texts.join(""));
}

/** What was typed before the questions were shown does not count. */
async function confirmed(
  host: CliHost,
  decision: Decision,
  count: number,
  signal: AbortSignal,
): Promise<boolean> {
  const verb = decision === "approve" ? "Approve" : "Deny";
  const reader = await LineReader.open(host);
  const close = () => reader.close();
  signal.addEventListener("abort", close);
  try {
    signal.throwIfAborted();
    const isAgreed = await reader.agrees(`${verb} ${count === 1 ? "this" : `these ${count}`}?`);
    signal.throwIfAborted();
    return isAgreed;
  } finally {
    signal.removeEventListener("abort", close);
    reader.close();
  }
}

/** Answers each question that was shown. A refusal does not stop the others; an unavailable broker does. */
async function send(
  delegator: Delegator,
  decision: Decision,
  asked: readonly OpenQuestion[],
  { text, data, json, asVoted }: DecideOptions,
  report: Report,
  signal: AbortSignal,
): Promise<void> {
  for (const { delegation, interrupt } of asked) {
    const { id } = delegation;
    try {
      const options = { text, data, interruptId: interrupt.id, signal };
      const isVoted = asVoted === true && interrupt.votes?.answers !== undefined;
      const answered = await (isVoted
        ? delegator.answer(id, interrupt.id, votedAnswer(interrupt, { text }), { signal })
        : delegator[decision](id, options)
      ).catch(explainRefusal(delegator, id));
      await report.sent(decision, answered);
    } catch (error) {
      if (!(error instanceof ErrandApiError)) throw error;
      const isUnknown = error.details?.outcome === "unknown";
      const outcome = isUnknown ? "unknown" : error.status > 0 ? "refused" : "not_sent";
      const stopsAll = !concernsOne(error);
      if (json || !stopsAll) await report.failed(id, outcome, nameDelegation(error, id));
      if (stopsAll) throw error;
    }
  }
}
