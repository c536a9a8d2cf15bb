/**
 * Waits for a delegation's end, with a status line on the terminal. A question is answered there, too; without a
 * terminal it ends the wait.
 */
import { Admin } from "../client/admin.ts";
import { Delegator } from "../client/delegator.ts";
import { ErrandApiError } from "../client/errors.ts";
import type { ConnectionOptions } from "../client/http.ts";
import type { Delegation, Interrupt } from "../schema/delegation.ts";
import type { StreamEvent } from "../schema/event.ts";
import { hasVoted } from "../schema/vote-text.ts";
import { sleep } from "../util/timing.ts";
import { answerInPlace } from "./answer-in-place.ts";
import { CliError, cliError, endError, Interrupted } from "./failure.ts";
import type { CliHost } from "./host.ts";
import { recoveryFor } from "./recovery.ts";
import { note } from "./show/output.ts";
import { howToAnswer, questionText } from "./show/questions.ts";
import { StatusLine } from "./show/status-line.ts";
import { localTime } from "./show/time.ts";
import { interruptible } from "./signals.ts";
import { noteWhyQueued, WaitLine } from "./wait-status.ts";

export interface Wait {
  readonly host: CliHost;
  readonly connection: ConnectionOptions;
  readonly id: string;
  readonly timeoutSeconds?: number | undefined;
  /** This command created it, so the user does not know its id yet. */
  readonly isNew?: boolean;
  /** With --json, stderr has only errors. */
  readonly json?: boolean | undefined;
  /** The user knows already why no worker has it. */
  readonly isExplained?: boolean;
  /** Called for each event. There is then no status line. */
  readonly onEvent?: ((event: StreamEvent) => Promise<void>) | undefined;
}

/** How long to wait for the last events once the delegation has ended. */
const EVENTS_MS = 5000;
/** How often a question that waits for the approvals of others is read again, should no event come. */
const OTHERS_MS = 10_000;

/** Returns the finished delegation. Throws at the timeout, at Ctrl-C, and at a question that is not answered here. */
export async function waitFor(options: Wait): Promise<Delegation> {
  const { host, connection, id, timeoutSeconds, isNew, json, isExplained, onEvent } = options;
  const mayAsk = host.isTty.stdin && host.isTty.stderr && !json;
  const background = new AbortController();
  const quiet = { ...connection, onRetry: undefined };
  const line =
    host.isTty.stderr && !json && !onEvent ? new WaitLine(new StatusLine(host.stderr), quiet) : undefined;
  const delegator = new Delegator({
    ...connection,
    onRetry: (error, delayMs) => {
      if (line) line.retrying(error.code);
      else connection.onRetry?.(error, delayMs);
    },
  });
  const asked = new OpenQuestion();
  const endsAt = performance.now() + (timeoutSeconds ?? Number.POSITIVE_INFINITY) * 1000;
  let principal: string | undefined;
  /** Whether this person has approved the question, so that it waits for others. */
  const isOwnVoteGiven = async (interrupt: Interrupt, signal: AbortSignal) => {
    if (!interrupt.votes?.given.length) return false;
    principal ??= (await new Admin(connection).status({ signal })).principal;
    return hasVoted(interrupt, principal);
  };
  try {
    return await interruptible(async (signal) => {
      if (line) void line.follow(id, background.signal, (event) => asked.see(event));
      else if (!json && !isExplained) void noteWhyQueued(host, quiet, id, background.signal);
      const forward = async (event: StreamEvent) => {
        asked.see(event);
        await onEvent?.(event);
      };
      const seen = onEvent ? forwardEvents(forward, quiet, id, background.signal) : Promise.resolve();
      // A failure to print events ends the wait, because the reader has gone. If only the events end, the wait continues.
      const failed = seen.then(() => new Promise<never>(() => undefined));
      for (;;) {
        const delegation = await Promise.race([delegator.wait(id, { timeoutSeconds, signal }), failed]);
        const { interrupt } = delegation;
        if (interrupt === null) {
          const late = sleep(EVENTS_MS, background.signal).catch(() => undefined);
          if (onEvent) await Promise.race([seen, late]);
          return delegation;
        }
        const leftOpen = () => asks(delegation, interrupt);
        if (!mayAsk) throw leftOpen();
        const closed = asked.open(delegation);
        if (await isOwnVoteGiven(interrupt, signal)) {
          if (performance.now() >= endsAt) throw leftOpen();
          await changed(closed, signal);
          continue;
        }
        line?.pause();
        const { isAfterClosed } = asked;
        const question = { host, delegator, delegation, interrupt, signal, closed, leftOpen, isAfterClosed };
        asked.close(await answerInPlace(question));
        line?.resume();
      }
    });
  } catch (error) {
    line?.pause();
    if (error instanceof Interrupted && !asked.isOpen) {
      await note(host, `${id} continues. See 'errand get ${id} --wait' and 'errand cancel ${id}'.`);
    }
    throw withId(id, error, isNew);
  } finally {
    background.abort();
    line?.pause();
  }
}

/** Aborts the prompt for a question when an event shows that somebody else has answered it, or approves it, too. */
class OpenQuestion {
  #closed: AbortController | undefined;
  #version = 0;
  /** The question before was not answered here. */
  isAfterClosed = false;

  get isOpen(): boolean {
    return this.#closed !== undefined;
  }

  open({ version }: Delegation): AbortSignal {
    this.#version = version;
    this.#closed = new AbortController();
    return this.#closed.signal;
  }

  close(end: "answered" | "voted" | "closed"): void {
    this.#closed = undefined;
    this.isAfterClosed = end === "closed";
  }

  see(event: StreamEvent): void {
    if (event.type === "RESET" || event.type === "DELEGATION_SNAPSHOT") return;
    const isOther = !event.state.endsWith("_required") || event.status === "voted";
    if (event.seq > this.#version && isOther) this.#closed?.abort();
  }
}

/** Resolves when an event shows a change of the question, or after a while, because events may be lost. */
async function changed(closed: AbortSignal, signal: AbortSignal): Promise<void> {
  await sleep(OTHERS_MS, AbortSignal.any([closed, signal])).catch(() => signal.throwIfAborted());
}

/** Adds the delegation's id to the error that ended the wait and, if the delegation continues, how to wait again. */
function withId(id: string, error: unknown, isNew = false): unknown {
  if (!(error instanceof ErrandApiError)) return error;
  const own = error instanceof CliError ? error.recovery : recoveryFor(error).replaceAll("<id>", id);
  const isComplete =
    error instanceof CliError || ["wait_ran_out", "delegation_not_found"].includes(error.code);
  const again = `${id} was accepted and continues; 'errand get ${id} --wait' waits again.`;
  const recovery = isNew && !isComplete ? `${own} ${again}` : own;
  return new CliError({ ...error.problem, recovery, delegation_id: id }, { cause: error });
}

/** Throws unless the delegation completed; the exit code is that of its error's category. */
export function requireCompleted(delegation: Delegation): void {
  if (delegation.state !== "completed") throw endError(delegation);
}

/** Passes on all events. The wait's own requests report errors of the broker. */
async function forwardEvents(
  onEvent: (event: StreamEvent) => Promise<void>,
  connection: ConnectionOptions,
  id: string,
  signal: AbortSignal,
) {
  try {
    for await (const event of new Delegator(connection).watch(id, { after: "0", signal }))
      await onEvent(event);
  } catch (error) {
    if (!(error instanceof ErrandApiError) && !signal.aborted) throw error;
  }
}

function asks(delegation: Delegation, interrupt: Interrupt) {
  const { id, state } = delegation;
  return cliError({
    code: state,
    category: "UPSTREAM",
    detail: `${id} asks: ${questionText(interrupt) || "a question without text"}`,
    recovery: `The question is open until ${localTime(interrupt.expires_at)}. Answer with ${howToAnswer(delegation)}; then 'errand get ${id} --wait' waits again.`,
    details: { delegation_id: id, interrupt },
  });
}
