/** Answers a question during a wait, at the terminal where the wait runs. */
import type { Delegator } from "../client/delegator.ts";
import { ErrandApiError } from "../client/errors.ts";
import type { Delegation, Interrupt } from "../schema/delegation.ts";
import { Interrupted } from "./failure.ts";
import type { CliHost } from "./host.ts";
import { answerByPrompt } from "./input/prompt.ts";
import { note, oneLine, write } from "./show/output.ts";
import { howToAnswer } from "./show/questions.ts";
import { localTime } from "./show/time.ts";

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
}

/** Resolves when the question is not open any more: answered here or by someone else. */
export async function answerInPlace(question: Question): Promise<void> {
  const { host, delegator, delegation, interrupt, signal, closed, leftOpen } = question;
  const { id, target } = delegation;
  const until = localTime(interrupt.expires_at);
  await write(host.stderr, `${oneLine(target)} asks, open until ${until} (an empty line leaves it open):\n`);
  try {
    await answerByPrompt(
      host,
      interrupt,
      (answer) => delegator.answer(id, interrupt.id, answer, { signal }),
      {
        signal: AbortSignal.any([signal, closed]),
        leftOpen,
      },
    );
  } catch (error) {
    if (error instanceof Interrupted) {
      await write(host.stderr, "\n");
      await note(host, `the question stays open until ${until}. Answer with ${howToAnswer(delegation)}.`);
      throw error;
    }
    if (!closed.aborted && !isClosed(error)) throw error;
    await write(host.stderr, "\n");
    await note(host, "the question is not open any more; somebody else answered it, or it expired.");
  }
}

const isClosed = (error: unknown): boolean =>
  error instanceof ErrandApiError && ["interrupt_not_open", "already_finished"].includes(error.code);
