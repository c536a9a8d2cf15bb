/**
 * Waiting for a delegation's end, with a line on the terminal meanwhile. Limit: a delegation that asks
 * something ends the wait; the question is shown, not answered.
 */
import { Delegator } from "../client/delegator.ts";
import { ErrandApiError, localError } from "../client/errors.ts";
import type { ConnectionOptions } from "../client/http.ts";
import { type Delegation, type Interrupt, progressSchema } from "../schema/delegation.ts";
import type { StreamEvent } from "../schema/event.ts";
import { sleep } from "../util/timing.ts";
import { endedBadly, InOurWords, Interrupted } from "./failure.ts";
import type { CliHost } from "./host.ts";
import { recoveryFor } from "./recovery.ts";
import { note, progressText } from "./show/output.ts";
import { howToAnswer, questionText } from "./show/questions.ts";
import { agentOf, whyStuck } from "./show/standing.ts";
import { WaitLine } from "./show/wait-line.ts";
import { interruptible } from "./signals.ts";

export interface Wait {
  readonly host: CliHost;
  readonly connection: ConnectionOptions;
  readonly id: string;
  readonly timeoutSeconds?: number | undefined;
  /** Delegated by this very command, so that nobody was told its id yet. */
  readonly isNew?: boolean;
  /** With --json: stderr is for errors alone. */
  readonly json?: boolean | undefined;
  /** Told of each event instead of the line on the terminal. */
  readonly onEvent?: ((event: StreamEvent) => Promise<void>) | undefined;
}

/** Work that a worker takes at once needs no explanation. */
const WHY_AFTER_MS = 1000;
/** The last events are on their way when the end is known. */
const EVENTS_MS = 5000;

/** The finished delegation; throws when the time ran out, when it asks something, or at Ctrl-C. */
export async function waitFor({
  host,
  connection,
  id,
  timeoutSeconds,
  isNew,
  json,
  onEvent,
}: Wait): Promise<Delegation> {
  const line = host.isTty.stderr && !onEvent ? new WaitLine(host.stderr) : undefined;
  const looking = new AbortController();
  const quiet = { ...connection, onRetry: undefined };
  const delegator = new Delegator({
    ...connection,
    onRetry: (error, delayMs) => {
      if (line) line.say(`the broker is away (${error.code}), trying again`);
      else connection.onRetry?.(error, delayMs);
    },
  });
  try {
    const delegation = await interruptible(async (signal) => {
      if (line) void look(line, quiet, id, looking.signal);
      else if (!json) void sayWhy(host, quiet, id, looking.signal);
      const seen = onEvent ? tellAll(onEvent, quiet, id, looking.signal) : Promise.resolve();
      // Of the telling only a failure may end the wait: nobody reads any more.
      const failed = seen.then(() => new Promise<never>(() => undefined));
      const ended = await Promise.race([delegator.wait(id, { timeoutSeconds, signal }), failed]);
      const late = sleep(EVENTS_MS, looking.signal).catch(() => undefined);
      if (onEvent && !ended.interrupt) await Promise.race([seen, late]);
      return ended;
    });
    if (delegation.interrupt) throw asks(delegation, delegation.interrupt);
    return delegation;
  } catch (error) {
    line?.clear();
    if (error instanceof Interrupted) {
      await note(host, `${id} goes on. See 'errand get ${id} --wait' and 'errand cancel ${id}'.`);
    }
    throw about(id, error, isNew);
  } finally {
    looking.abort();
    line?.clear();
  }
}

/** What ended the wait, with the delegation's id, and the way back to one that goes on. */
function about(id: string, error: unknown, isNew = false): unknown {
  if (!(error instanceof ErrandApiError)) return error;
  const own = error instanceof InOurWords ? error.recovery : recoveryFor(error).replaceAll("<id>", id);
  const isTold = error instanceof InOurWords || ["wait_ran_out", "delegation_not_found"].includes(error.code);
  const back = `${id} was accepted and goes on; 'errand get ${id} --wait' waits again.`;
  const recovery = isNew && !isTold ? `${own} ${back}` : own;
  return new InOurWords({ ...error.problem, recovery, delegation_id: id }, { cause: error });
}

/** Throws the error that a bad end stands for: the exit code is its category's. */
export function refuseBadEnd(delegation: Delegation): void {
  if (delegation.state !== "completed") throw endedBadly(delegation);
}

/** From the beginning to the end; what fails here the wait's own calls meet too, and say so. */
async function tellAll(
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

/** Keeps the line true. Only for the eye: whatever fails here, the wait itself goes on. */
async function look(line: WaitLine, connection: ConnectionOptions, id: string, signal: AbortSignal) {
  try {
    for await (const event of new Delegator(connection).watch(id, { signal })) {
      const said = describe(event);
      if (said) line.say(said);
      const target = waitingFor(event);
      if (target) void sayPresence(line, connection, target, signal);
    }
  } catch {
    // The wait itself makes the same calls and reports their errors.
  }
}

async function sayPresence(
  line: WaitLine,
  connection: ConnectionOptions,
  target: string,
  signal: AbortSignal,
) {
  const agent = await agentOf(connection, target, signal).catch(() => undefined);
  if (!agent || signal.aborted || !line.text.startsWith("submitted")) return;
  const { waiting } = agent.counts;
  const why = whyStuck(agent) ?? (waiting > 1 ? `${waiting} are waiting` : undefined);
  line.say(why === undefined ? "submitted" : `submitted, ${why}`);
}

/** Without a terminal: says once why no worker takes the delegation. A failure here does not end the wait. */
async function sayWhy(host: CliHost, connection: ConnectionOptions, id: string, signal: AbortSignal) {
  try {
    await sleep(WHY_AFTER_MS, signal);
    const { state, target } = await new Delegator(connection).get(id, { signal });
    const agent = state === "submitted" ? await agentOf(connection, target, signal) : undefined;
    const why = agent && whyStuck(agent);
    if (why !== undefined && !signal.aborted) await note(host, `${id} waits: ${why}.`);
  } catch {
    // The wait itself makes the same calls and reports their errors.
  }
}

function waitingFor(event: StreamEvent): string | undefined {
  if (event.type === "RESET") return undefined;
  if (event.type === "DELEGATION_SNAPSHOT") {
    return event.delegation.state === "submitted" ? event.delegation.target : undefined;
  }
  return event.state === "submitted" ? event.target : undefined;
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
  const { problem } = localError({
    code: state,
    category: "UPSTREAM",
    detail: `${id} asks: ${questionText(interrupt) || "something"}`,
    recovery: `It is open until ${interrupt.expires_at}. Answer with ${howToAnswer(delegation)}; then 'errand get ${id} --wait' waits on.`,
    details: { delegation_id: id, interrupt },
  });
  return new InOurWords(problem);
}
