/**
 * Waits for a delegation's end, with a status line on the terminal. A question ends the wait: it is shown, not answered.
 */
import { Delegator } from "../client/delegator.ts";
import { ErrandApiError } from "../client/errors.ts";
import type { ConnectionOptions } from "../client/http.ts";
import { type Delegation, type Interrupt, progressSchema } from "../schema/delegation.ts";
import type { DelegationEvent, StreamEvent } from "../schema/event.ts";
import { sleep } from "../util/timing.ts";
import { CliError, cliError, endError, Interrupted } from "./failure.ts";
import type { CliHost } from "./host.ts";
import { recoveryFor } from "./recovery.ts";
import { note, progressText } from "./show/output.ts";
import { howToAnswer, questionText } from "./show/questions.ts";
import { whyQueued } from "./show/state-details.ts";
import { StatusLine } from "./show/status-line.ts";
import { interruptible } from "./signals.ts";

export interface Wait {
  readonly host: CliHost;
  readonly connection: ConnectionOptions;
  readonly id: string;
  readonly timeoutSeconds?: number | undefined;
  /** This command created it, so the user does not know its id yet. */
  readonly isNew?: boolean;
  /** With --json, stderr has only errors. */
  readonly json?: boolean | undefined;
  /** Called for each event. There is then no status line. */
  readonly onEvent?: ((event: StreamEvent) => Promise<void>) | undefined;
}

/** Often a worker has the delegation before this; then there is nothing to explain. */
const WHY_AFTER_MS = 1000;
/** How long to wait for the last events once the delegation has ended. */
const EVENTS_MS = 5000;

/** Returns the finished delegation. Throws at the timeout, at a question and at Ctrl-C. */
export async function waitFor({
  host,
  connection,
  id,
  timeoutSeconds,
  isNew,
  json,
  onEvent,
}: Wait): Promise<Delegation> {
  const line = host.isTty.stderr && !onEvent ? new StatusLine(host.stderr) : undefined;
  const background = new AbortController();
  const quiet = { ...connection, onRetry: undefined };
  const delegator = new Delegator({
    ...connection,
    onRetry: (error, delayMs) => {
      if (line) line.say(`the broker is unavailable (${error.code}), retrying`);
      else connection.onRetry?.(error, delayMs);
    },
  });
  try {
    const delegation = await interruptible(async (signal) => {
      if (line) void updateLine(line, quiet, id, background.signal);
      else if (!json) void noteWhyQueued(host, quiet, id, background.signal);
      const seen = onEvent ? forwardEvents(onEvent, quiet, id, background.signal) : Promise.resolve();
      // A failure to print events ends the wait, because the reader has gone. If only the events end, the wait continues.
      const failed = seen.then(() => new Promise<never>(() => undefined));
      const ended = await Promise.race([delegator.wait(id, { timeoutSeconds, signal }), failed]);
      const late = sleep(EVENTS_MS, background.signal).catch(() => undefined);
      if (onEvent && !ended.interrupt) await Promise.race([seen, late]);
      return ended;
    });
    if (delegation.interrupt) throw asks(delegation, delegation.interrupt);
    return delegation;
  } catch (error) {
    line?.clear();
    if (error instanceof Interrupted) {
      await note(host, `${id} continues. See 'errand get ${id} --wait' and 'errand cancel ${id}'.`);
    }
    throw withId(id, error, isNew);
  } finally {
    background.abort();
    line?.clear();
  }
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

/** Updates the status line. A failure here does not end the wait. */
async function updateLine(line: StatusLine, connection: ConnectionOptions, id: string, signal: AbortSignal) {
  try {
    for await (const event of new Delegator(connection).watch(id, { signal })) {
      const text = describe(event);
      if (text) line.say(text);
      if (event.type !== "RESET") {
        const what = event.type === "DELEGATION_SNAPSHOT" ? event.delegation : event;
        void showWhyQueued(line, connection, what, signal);
      }
    }
  } catch {
    // The wait itself makes the same calls and reports their errors.
  }
}

async function showWhyQueued(
  line: StatusLine,
  connection: ConnectionOptions,
  what: Delegation | DelegationEvent,
  signal: AbortSignal,
) {
  const why = await whyQueued(connection, what, signal).catch(() => null);
  if (why !== null && !signal.aborted && line.text.startsWith("submitted")) line.say(`submitted: ${why}`);
}

/** Without a terminal: prints once why no worker takes the delegation. A failure here does not end the wait. */
async function noteWhyQueued(host: CliHost, connection: ConnectionOptions, id: string, signal: AbortSignal) {
  try {
    await sleep(WHY_AFTER_MS, signal);
    const delegation = await new Delegator(connection).get(id, { signal });
    const why = await whyQueued(connection, delegation, signal);
    if (why !== null && !signal.aborted) await note(host, `${id} is queued. ${why}`);
  } catch {
    // The wait itself makes the same calls and reports their errors.
  }
}

function describe(event: StreamEvent): string | undefined {
  if (event.type === "RESET") return undefined;
  if (event.type === "DELEGATION_SNAPSHOT") {
    const { state, attempt, progress } = event.delegation;
    return [state, attempt > 1 && `attempt ${attempt}`, progress && progressText(progress)]
      .filter(Boolean)
      .join(", ");
  }
  const { attempt } = event;
  const progress = progressSchema.safeParse(event.progress).data;
  return [
    event.state,
    typeof attempt === "number" && attempt > 1 && `attempt ${attempt}`,
    progress && progressText(progress),
  ]
    .filter((part) => typeof part === "string" && part !== "")
    .join(", ");
}

function asks(delegation: Delegation, interrupt: Interrupt) {
  const { id, state } = delegation;
  return cliError({
    code: state,
    category: "UPSTREAM",
    detail: `${id} asks: ${questionText(interrupt) || "a question without text"}`,
    recovery: `The question is open until ${interrupt.expires_at}. Answer with ${howToAnswer(delegation)}; then 'errand get ${id} --wait' waits again.`,
    details: { delegation_id: id, interrupt },
  });
}
