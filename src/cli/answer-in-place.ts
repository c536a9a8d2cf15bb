/** Answers a question during a wait, at the terminal where the wait runs. */
import type { Delegator } from "../client/delegator.ts";
import { ErrandApiError } from "../client/errors.ts";
import type { Delegation, Interrupt } from "../schema/delegation.ts";
import { Interrupted } from "./failure.ts";
import type { CliHost } from "./host.ts";
import { LineReader } from "./input/line-reader.ts";
import { answerByPrompt } from "./input/prompt.ts";
import { note, oneLine, write } from "./show/output.ts";
import { howToAnswer, whyClosed } from "./show/questions.ts";
import { localTime } from "./show/time.ts";
import { sentText, votesLine, wasVote } from "./show/votes.ts";

interface Question {
  readonly host: CliHost;
  readonly delegator: Delegator;
  readonly delegation: Delegation;
  readonly interrupt: Interrupt;
  /** Ctrl-C. */
  readonly signal: AbortSignal;
  /** Aborts when the question is no longer open. */
  readonly closed: AbortSignal;
  /** The error for an empty answer, which leaves the question open. */
  readonly leftOpen: () => Error;
  /** The previous question was closed while the user may have been typing its answer. */
  readonly isAfterClosed: boolean;
}

/**
 * Resolves when the question was answered here, or is no longer open. `voted`: others must approve it, too, so that it
 * stays open.
 */
export async function answerInPlace(question: Question): Promise<"answered" | "voted" | "closed"> {
  const { host, delegator, delegation, interrupt, closed, leftOpen, isAfterClosed } = question;
  const { id, target } = delegation;
  const until = localTime(interrupt.expires_at);
  const signal = AbortSignal.any([question.signal, closed]);
  try {
    if (isAfterClosed) await enterPressed(host, signal, leftOpen);
    const votes = votesLine(interrupt);
    const more = votes === undefined ? "" : `, ${votes}`;
    await write(
      host.stderr,
      `${oneLine(target)} asks, open until ${until}${more} (an empty line leaves it open):\n`,
    );
    const answered = await answerByPrompt(
      host,
      interrupt,
      (answer) => delegator.answer(id, interrupt.id, answer, { signal: question.signal }),
      { signal, leftOpen },
    );
    if (!wasVote(answered, interrupt.id)) return "answered";
    await note(host, `${sentText("answered", answered, interrupt.id)}.`);
    return "voted";
  } catch (error) {
    if (error instanceof Interrupted) {
      await write(host.stderr, "\n");
      await note(host, `the question stays open until ${until}. Answer with ${howToAnswer(delegation)}.`);
      throw error;
    }
    if (!closed.aborted && !isClosed(error)) throw error;
    await write(host.stderr, "\n");
    const now = await delegator.get(id, { signal: question.signal }).catch(() => undefined);
    if (now?.interrupt?.id === interrupt.id) {
      await note(host, `the question has other approvals now: ${votesLine(now.interrupt) ?? "none"}.`);
      return "closed";
    }
    const why = now ? whyClosed(now, interrupt) : "answered by somebody else, or expired";
    await note(host, `the question is not open any more: ${why}.`);
    return "closed";
  }
}

/** Only an empty line counts: any other may be the rest of an answer to the question before. */
async function enterPressed(host: CliHost, signal: AbortSignal, leftOpen: () => Error): Promise<void> {
  signal.throwIfAborted();
  const reader = await LineReader.open(host);
  const close = () => reader.close();
  signal.addEventListener("abort", close);
  try {
    for (;;) {
      signal.throwIfAborted();
      const line = await reader.next("press Enter for the next question: ");
      signal.throwIfAborted();
      if (line === undefined) throw leftOpen();
      if (line === "") return;
    }
  } finally {
    signal.removeEventListener("abort", close);
    reader.close();
  }
}

const isClosed = (error: unknown): boolean =>
  error instanceof ErrandApiError && ["interrupt_not_open", "already_finished"].includes(error.code);
