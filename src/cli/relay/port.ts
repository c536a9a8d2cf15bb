/** Implements the relay's port with the client library: the operations on a lease, and the conversion of the outcome. */
import { ErrandApiError, isFull } from "../../client/errors.ts";
import { WorkerUnavailableError } from "../../client/unavailable.ts";
import type { Outcome, Work } from "../../client/work.ts";
import { LeaseLostError } from "../../lease-holder/lost.ts";
import type { RelayOutcome, RelayPort } from "../../relay/port.ts";
import { replyMessageInputSchema } from "../../schema/a2a.ts";
import { isTerminal } from "../../schema/delegation.ts";
import type { Lease } from "../../schema/lease.ts";
import { chunksOf } from "../files/download-file.ts";

export function toPort(work: Work, say: (line: string) => void): RelayPort {
  const { delegation, request, attempt, leaseId: lease_id, signal } = work;
  const lease: Lease = {
    lease_id,
    expires_at: delegation.lease?.expires_at ?? delegation.updated_at,
    attempt,
    delegation,
    request,
    ...(work.traceparent !== undefined && { traceparent: work.traceparent }),
    ...(work.checkpoint !== undefined && { checkpoint: work.checkpoint }),
  };
  return {
    lease,
    signal,
    isOver: () => isOver(work),
    saveCheckpoint: (checkpoint) => work.saveCheckpoint(checkpoint),
    progress: (message) => work.progress(message),
    async artifact({ artifact, append, lastChunk }) {
      try {
        await work.artifact(artifact, { append, lastChunk });
        return "kept";
      } catch (error) {
        if (!(error instanceof ErrandApiError)) throw error;
        if (isFull(error)) return "full";
        if (error.code === "payload_too_large") return "too_large";
        throw error;
      }
    },
    loadFile: (part) => chunksOf(work.delegator, [part], signal),
    onMessage: (listener) => void work.onMessage(listener),
    note: (what) => say(`${delegation.id} ${what}`),
  };
}

/** Whether the delegation has ended. An expired lease does not say: another relay may continue the work. */
async function isOver({ signal, delegation, delegator }: Work): Promise<boolean> {
  const reason: unknown = signal.reason;
  if (!(reason instanceof LeaseLostError)) return false;
  if (reason.reason === "canceled") return true;
  if (reason.reason !== "expired") return false;
  return delegator.get(delegation.id).then(
    ({ state }) => isTerminal(state),
    () => false,
  );
}

/** Throws if the server cannot take any work. */
export function toOutcome(work: Work, outcome: RelayOutcome): Outcome {
  switch (outcome.kind) {
    case "reply":
      return outcome.reply;
    case "message": {
      const { message } = outcome;
      // `/replies` accepts more parts than a reply; the broker should refuse what it refuses of a push agent.
      const isAccepted = replyMessageInputSchema.safeParse(message).success;
      return isAccepted ? work.bareMessage(message) : { state: "completed", message };
    }
    case "ask": {
      const { kind, request_id: requestId, message } = outcome.interrupt;
      return work.question({ requestId, message }, { kind });
    }
    case "release": {
      // Without the server, no other work would succeed either.
      const { delaySeconds, reason: detail, pause } = outcome;
      throw new WorkerUnavailableError(pause, { delaySeconds, detail });
    }
    case "canceled":
      return work.cancel(outcome.text);
    case "stopped":
      return work.release({ reason: "the relay is stopping" });
  }
}
