/**
 * Tasks that nobody wants any more, because their delegation ended without them: found by its checkpoint, and canceled.
 * Limit: a task whose id was never heard is found where the server lists its tasks.
 */
import { type Delegation, isTerminal } from "../schema/delegation.ts";
import { readCheckpoint } from "./checkpoint.ts";
import { first } from "./messages.ts";
import type { Remote } from "./remote.ts";
import { toRemoteError } from "./remote-error.ts";

/** How a delegation ends without a word of its agent. */
export const UNWANTED = ["canceled", "deadline_exceeded", "interrupt_expired", "attempts_exhausted"] as const;

/** Returns when there is nothing more to do; throws RemoteError when it may go better later. */
export async function abandon(
  remote: Remote,
  delegation: Pick<Delegation, "id" | "message" | "context_id" | "checkpoint">,
  signal: AbortSignal,
): Promise<void> {
  const mark = readCheckpoint(delegation.checkpoint);
  if (!mark?.task && !mark?.sending) return;
  try {
    const session = await remote.open(signal);
    const task = mark.task ?? (await session.find(first(delegation), signal))?.id;
    if (task === undefined) return;
    const { status } = await session.get(task, signal);
    if (status.state === undefined || !isTerminal(status.state.state)) await session.cancel(task, signal);
  } catch (thrown) {
    signal.throwIfAborted();
    const error = toRemoteError(thrown);
    // It is over, or never ends so.
    if (["gone", "failed", "unsupported"].includes(error.kind)) return;
    remote.forget();
    throw error;
  }
}
