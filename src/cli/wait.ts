/**
 * Waiting for a delegation's end, with a line on the terminal meanwhile. Limit: a delegation that asks
 * something ends the wait; the question is shown, not answered.
 */
import { Admin } from "../client/admin.ts";
import { Delegator } from "../client/delegator.ts";
import { localError } from "../client/errors.ts";
import type { ConnectionOptions } from "../client/http.ts";
import { textOf } from "../schema/a2a.ts";
import type { Delegation } from "../schema/delegation.ts";
import type { StreamEvent } from "../schema/event.ts";
import { endedBadly, Interrupted } from "./failure.ts";
import type { CliHost } from "./host.ts";
import { note } from "./output.ts";
import { interruptible } from "./signals.ts";
import { WaitLine } from "./wait-line.ts";

export interface Wait {
  readonly host: CliHost;
  readonly connection: ConnectionOptions;
  readonly id: string;
  readonly timeoutSeconds?: number | undefined;
}

/** The finished delegation; throws when the time ran out, when it asks something, or at Ctrl-C. */
export async function waitFor({ host, connection, id, timeoutSeconds }: Wait): Promise<Delegation> {
  const line = host.isTty.stderr ? new WaitLine(host.stderr) : undefined;
  const looking = new AbortController();
  const delegator = new Delegator({
    ...connection,
    onRetry: (error) => line?.say(`the broker is away (${error.code}), trying again`),
  });
  try {
    const delegation = await interruptible((signal) => {
      if (line) void look(line, connection, id, looking.signal);
      return delegator.wait(id, { timeoutSeconds, signal });
    });
    if (delegation.interrupt) throw asks(delegation);
    return delegation;
  } catch (error) {
    line?.clear();
    if (error instanceof Interrupted) {
      await note(host, `${id} goes on. See 'errand get ${id} --wait' and 'errand cancel ${id}'.`);
    }
    throw error;
  } finally {
    looking.abort();
    line?.clear();
  }
}

/** Throws the error that a bad end stands for: the exit code is its category's. */
export function refuseBadEnd({ id, state, error }: Delegation): void {
  if (state !== "completed") throw endedBadly(id, state, error);
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
    // The wait's own calls meet the same trouble and say so.
  }
}

async function sayPresence(
  line: WaitLine,
  connection: ConnectionOptions,
  target: string,
  signal: AbortSignal,
) {
  const { presence, counts } = await new Admin(connection)
    .getAgent(target, { signal })
    .catch(() => ({ presence: undefined, counts: undefined }));
  if (!presence || signal.aborted || !line.text.startsWith("submitted")) return;
  const ahead = counts.waiting > 1 ? `, ${counts.waiting} are waiting` : "";
  line.say(presence.state === "online" ? `submitted${ahead}` : `submitted, nobody is polling ${target}`);
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
    return [state, attempt > 1 && `attempt ${attempt}`, progress?.message].filter(Boolean).join(", ");
  }
  const { attempt, progress } = event;
  const message = typeof progress === "object" && progress && "message" in progress && progress.message;
  return [event.state, typeof attempt === "number" && attempt > 1 && `attempt ${attempt}`, message]
    .filter((part) => typeof part === "string" && part !== "")
    .join(", ");
}

function asks({ id, interrupt }: Delegation) {
  const questions = interrupt?.requests.map(({ message }) => textOf(message)).join(" / ");
  return localError({
    code: "input_required",
    category: "UPSTREAM",
    detail: `${id} asks: ${questions || "something"}`,
    recovery: `Answer it with POST /v1/delegations/${id}/answer, then wait with 'errand get ${id} --wait'.`,
    details: { interrupt },
  });
}
