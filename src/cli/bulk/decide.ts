/**
 * `errand approve` and `errand deny` for several delegations: shows all questions, asks for confirmation, then reports
 * the outcome of each. An answer to a question that changed meanwhile is refused. A failure leaves earlier answers in
 * place.
 */
import { Delegator } from "../../client/delegator.ts";
import { ErrandApiError } from "../../client/errors.ts";
import { Pages } from "../../client/pages.ts";
import type { Decision } from "../../schema/decision.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { type Cli, connect } from "../context.ts";
import { readerOf } from "../counted.ts";
import { exitCodeFor, nameDelegation, usageError, worstExitCode } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { votedAnswer } from "../input/as-voted.ts";
import { LineReader } from "../input/line-reader.ts";
import { explainRefusal } from "../open-question.ts";
import { note, print, printError, printJson } from "../show/output.ts";
import { sentText } from "../show/votes.ts";
import { interruptible } from "../signals.ts";
import { concernsOne } from "./each-id.ts";
import {
  allQuestions,
  type DecideOptions,
  type OpenQuestion,
  questionsOf,
  showQuestions,
} from "./questions.ts";

/** The past tense of each decision. */
export const PAST = { approve: "approved", deny: "denied" } as const;

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
              (id, error) => report.failed(id, "not_sent", error),
              signal,
            ),
            ...{ skipped: 0, uncounted: 0 },
          };
      if (!json) await showQuestions(host, asked, decision, options);
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
