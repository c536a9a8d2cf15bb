/** The open questions that `errand approve` and `errand deny` decide when there are several, and their text for a terminal. */
import type { Delegator } from "../../client/delegator.ts";
import type { ErrandApiError } from "../../client/errors.ts";
import type { Pages } from "../../client/pages.ts";
import type { Decision } from "../../schema/decision.ts";
import type { Delegation, Interrupt } from "../../schema/delegation.ts";
import { hasVoted } from "../../schema/vote-text.ts";
import type { Cli, GlobalOptions } from "../context.ts";
import type { readerOf } from "../counted.ts";
import { nameDelegation } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { type AsVoted, voidsOthers, wouldVoid } from "../input/as-voted.ts";
import { voidedIn, voidsText, withOthers } from "../input/voids.ts";
import { questionFor } from "../open-question.ts";
import { QUESTION_STATES } from "../rights.ts";
import { oneLine, painter, write } from "../show/output.ts";
import { isYesOrNo, requestLine, whyDecisionIsNotEnough } from "../show/questions.ts";
import { terminalWidth } from "../show/terminal-width.ts";
import { wrapText } from "../show/text.ts";
import { votesLine } from "../show/votes.ts";
import { concernsOne, throwIfUnknown } from "./each-id.ts";

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

export type Reader = () => ReturnType<typeof readerOf>;

/** Only what is shown, because whole delegations may have megabytes. */
export interface OpenQuestion {
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

/** The questions of these delegations. Calls `failed` for each delegation without a question to decide. */
export async function questionsOf(
  delegator: Delegator,
  reader: Reader,
  decision: Decision,
  ids: readonly string[],
  { unknownIds, ...options }: DecideOptions & Pick<Cli, "unknownIds">,
  failed: (id: string, error: ErrandApiError) => Promise<void>,
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
      await failed(id, nameDelegation(error, id));
    }
  }
  return found;
}

/** All open questions that name the decision as an answer, oldest first, and how many others are open. */
export async function allQuestions(
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

export async function showQuestions(
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
