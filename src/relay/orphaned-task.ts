/**
 * Cancels the remote task of a delegation that ended without its agent's reply. The delegation's checkpoint names the
 * task. Limit: a task whose id never arrived is found only if the server can list its tasks.
 */
import { type Delegation, isTerminal } from "../schema/delegation.ts";
import { readCheckpoint } from "./checkpoint.ts";
import { taskMessage } from "./messages.ts";
import type { Remote } from "./remote.ts";
import { toRemoteError } from "./remote-error.ts";

/** The error codes of delegations that ended without their agent's reply. */
export const ENDED_WITHOUT_AGENT = [
  "canceled",
  "deadline_exceeded",
  "interrupt_expired",
  "attempts_exhausted",
  "worker_unavailable",
] as const;

/** Resolves when nothing is left to do. Throws {@link RemoteError} when a later try may succeed. */
export async function cancelOrphanedTask(
  remote: Remote,
  delegation: Pick<Delegation, "id" | "message" | "context_id" | "checkpoint">,
  signal: AbortSignal,
): Promise<void> {
  const known = readCheckpoint(delegation.checkpoint);
  if (!known?.task && !known?.sending) return;
  try {
    const session = await remote.open(signal);
    const task = known.task ?? (await session.find(taskMessage(delegation), signal))?.id;
    if (task === undefined) return;
    const { status } = await session.get(task, signal);
    if (status.state === undefined || !isTerminal(status.state.state)) await session.cancel(task, signal);
  } catch (thrown) {
    signal.throwIfAborted();
    const error = toRemoteError(thrown);
    // The task has ended, or cannot be canceled.
    if (["gone", "failed", "unsupported"].includes(error.kind)) return;
    remote.forget();
    throw error;
  }
}
