/** Ends a run that was stopped, or that failed before the remote task had a result. */
import type { CheckpointStore } from "./checkpoint.ts";
import { FilesTooLargeError } from "./message-files.ts";
import { taskMessage } from "./messages.ts";
import { failed, filesTooLarge, released, taskLost, tooLarge } from "./outcomes.ts";
import { OutputTooLargeError } from "./output.ts";
import type { RelayOutcome, RelayPort } from "./port.ts";
import type { Remote } from "./remote.ts";
import { RemoteError, toRemoteError } from "./remote-error.ts";

export interface RunEnd {
  readonly port: RelayPort;
  readonly remote: Remote;
  readonly checkpoints: CheckpointStore;
}

/** Cancels the task of a run that was stopped, unless another run may continue it. Never throws. */
export async function endStopped({ port, remote, checkpoints }: RunEnd): Promise<RelayOutcome> {
  const { task, sending } = checkpoints.checkpoint;
  if ((task !== undefined || sending) && (await port.isOver())) {
    const { signal } = new AbortController();
    try {
      const session = await remote.open(signal);
      const id = task ?? (await session.find(taskMessage(port.lease.delegation), signal))?.id;
      if (id !== undefined) await remote.cancel(id, port.note);
    } catch (error) {
      port.note(`the task was not canceled: ${toRemoteError(error).message}`);
    }
  }
  return { kind: "stopped" };
}

/** Fails or releases the delegation, and cancels the task if no other run will continue it. */
export async function endFailed(end: RunEnd, error: unknown): Promise<RelayOutcome> {
  const { port, remote, checkpoints } = end;
  if (error instanceof OutputTooLargeError) {
    await cancelSavedTask(end);
    return tooLarge();
  }
  if (error instanceof FilesTooLargeError) {
    await cancelSavedTask(end);
    return filesTooLarge(error);
  }
  if (!(error instanceof RemoteError)) {
    port.note("the relay failed with an internal error");
    return failed(new RemoteError("broken", "the relay failed with an internal error"), true);
  }
  const { kind } = error;
  if (kind === "unsent" || kind === "away" || kind === "refused") {
    remote.forget();
    return released(error);
  }
  if (kind === "gone") {
    await checkpoints.save({ turn: checkpoints.answerCount, said: 0 }).catch(() => undefined);
    return taskLost(error);
  }
  const { attempt, max_attempts } = port.lease.delegation;
  if (!error.retryable || attempt >= max_attempts) await cancelSavedTask(end);
  return failed(error, error.retryable);
}

async function cancelSavedTask({ port, remote, checkpoints }: RunEnd): Promise<void> {
  const { task } = checkpoints.checkpoint;
  if (task !== undefined) await remote.cancel(task, port.note);
}
