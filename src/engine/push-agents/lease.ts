/**
 * One lease that a gateway holds for a push agent, and the relay's port to it: heartbeats, progress, artifacts and the
 * reply, by the same verbs as requests. Lone surrogates in the agent's output become U+FFFD.
 */
import type * as z from "zod";
import { LeaseHolder, type LeaseTransport, type Verdict } from "../../lease-holder/lease-holder.ts";
import { CutOffError, LeaseLostError, toLostReason } from "../../lease-holder/lost.ts";
import { classify } from "../../redis/errors.ts";
import { randomId } from "../../redis/shards.ts";
import type { RelayOutcome, RelayPort } from "../../relay/port.ts";
import { artifactSchema, type Message } from "../../schema/a2a.ts";
import { ErrandError } from "../../schema/errors.ts";
import { fileOfUrl } from "../../schema/file-url.ts";
import { interruptRequestSchema } from "../../schema/interrupt.ts";
import { invalidRequest, readAs } from "../../schema/issues.ts";
import { type Lease, replyRequestSchema, type WorkerPause } from "../../schema/lease.ts";
import { wellFormed } from "../../schema/text.ts";
import { onAbort } from "../../util/timing.ts";
import { type Principal, toPrincipal } from "../access/access.ts";
import { type Moves, warn } from "../after-move.ts";
import type { Broker } from "../broker.ts";
import { read } from "../delegations/read.ts";
import { findFileOf } from "../files/download.ts";
import { requireFiles } from "../files/files.ts";
import type { NamesFiles } from "../files/name-files.ts";
import { replyA2a } from "../leases/a2a-reply.ts";
import { addArtifact } from "../leases/artifacts.ts";
import { heartbeat } from "../leases/heartbeat.ts";
import { release } from "../leases/release.ts";
import { reply } from "../leases/reply.ts";
import { ask } from "../questions/ask.ts";
import type { Asks } from "../questions/ask-move.ts";

const LONGEST_RETRY_MS = 500;
/** How long a stopping gateway repeats its last call. */
const LAST_CALL_MS = 1_000;

/** The reason of the relay's signal when the gateway stops. */
const STOPPING = new Error("the gateway is stopping");

/** The verbs of a lease's holder. */
export type HolderVerbs = Moves & NamesFiles & Asks & Pick<Broker, "feed" | "heldHeartbeats" | "presence">;

export class PushAgentLease {
  readonly #broker: HolderVerbs;
  readonly #agent: string;
  readonly #principal: Principal;
  readonly #lease: Lease;
  readonly #holder: LeaseHolder;
  readonly #stopping: AbortSignal;
  readonly #unsubscribe: () => void;

  /** `stopping` aborts when the gateway stops. */
  constructor(broker: HolderVerbs, agent: string, lease: Lease, stopping: AbortSignal) {
    this.#broker = broker;
    this.#agent = agent;
    this.#principal = toPrincipal(`agent:${agent}`);
    this.#lease = lease;
    this.#stopping = stopping;
    this.#holder = new LeaseHolder(this.#transport(), lease, performance.now());
    const { signal } = this.#holder;
    onAbort(signal, () => {
      if (this.#holder.lost === "unknown") warn(broker, signal.reason, "lease of a push agent lost");
    });
    const stop = () => this.#holder.stopHandler(STOPPING);
    this.#unsubscribe = onAbort(stopping, stop);
    if (stopping.aborted) stop();
    void this.#holder.keepAlive();
  }

  port(): RelayPort {
    const holder = this.#holder;
    const { id } = this.#lease.delegation;
    return {
      lease: this.#lease,
      signal: holder.signal,
      isOver: () => this.#isOver(),
      // Saved even while the gateway stops, so that the next one continues with the same task.
      saveCheckpoint: (checkpoint) => holder.saveCheckpoint(checkpoint, this.#deadline()),
      progress: (message) => holder.progress({ message: message.toWellFormed() }),
      artifact: (chunk) => this.#artifact({ ...chunk, artifact: accepted(artifactSchema, chunk.artifact) }),
      loadFile: ({ url = "" }) => this.#load(url),
      onMessage: (listener) => void holder.followUps.listen(listener),
      note: (what) => this.#broker.log.info({ delegation_id: id, agent: this.#agent }, what),
    };
  }

  /** Ends the lease with the outcome; a run that was stopped releases it. `worker`: this gateway pauses. */
  async end(outcome: RelayOutcome, worker?: WorkerPause): Promise<void> {
    const holder = this.#holder;
    void holder.handlerDone();
    if (holder.lost !== null) return;
    try {
      await this.#repeat(() => this.#write(outcome, worker));
    } catch (error) {
      if (error instanceof LeaseLostError) return;
      // Only a refusal fails the work. After a call that Redis did not serve, the lease expires.
      if (!(error instanceof ErrandError) || judge(error).kind !== "refused") throw error;
      const why = { code: error.code, message: `the broker refused the agent's reply: ${error.message}` };
      await this.#repeat(() => this.#reply({ state: "failed", error: why })).catch(ignoreLoss);
    }
  }

  close(): void {
    this.#unsubscribe();
    this.#holder.close(true);
  }

  #transport(): LeaseTransport {
    const { lease_id } = this.#lease;
    return {
      heartbeat: (request, { signal }) =>
        heartbeat(
          this.#broker,
          this.#principal,
          lease_id,
          { ...request, wait_seconds: request.wait_seconds ?? 0 },
          signal,
        ),
      judge,
      longestRetryMs: LONGEST_RETRY_MS,
    };
  }

  /** Repeats a call until the broker accepts it, also after the run was stopped. */
  #repeat(call: () => Promise<void>): Promise<void> {
    return this.#holder.retry(call, this.#deadline());
  }

  #deadline(): { readonly until: () => number } {
    const startedAt = performance.now();
    return {
      until: () => (this.#stopping.aborted ? startedAt + LAST_CALL_MS : Number.POSITIVE_INFINITY),
    };
  }

  /** A file of the delegation: its agent may read it. */
  async *#load(url: string): AsyncGenerator<Uint8Array> {
    const { delegation_id = this.#lease.delegation.id, file_id } = fileOfUrl(url) ?? {};
    if (file_id === undefined) throw new TypeError("not the url of a file");
    const { name } = await findFileOf(this.#broker, this.#principal, delegation_id, file_id);
    yield* await requireFiles(this.#broker).store.read(name);
  }

  async #write(outcome: RelayOutcome, worker: WorkerPause | undefined): Promise<void> {
    const broker = this.#broker;
    const { lease_id } = this.#lease;
    switch (outcome.kind) {
      case "reply":
        return this.#reply({ ...outcome.reply, worker });
      case "message": {
        const { message } = accepted(replyRequestSchema, { state: "completed", message: outcome.message });
        const action = { kind: "reply", state: "completed", message, bare: true } as const;
        await replyA2a(broker, this.#principal, this.#agent, { by: "lease", lease_id }, action, action);
        return;
      }
      case "ask": {
        const asked = accepted(interruptRequestSchema, outcome.interrupt);
        await ask(broker, this.#principal, lease_id, asked);
        return;
      }
      case "release": {
        const { delaySeconds: delay_seconds } = outcome;
        const reason = outcome.reason.toWellFormed();
        await release(broker, this.#principal, lease_id, { delay_seconds, reason, worker });
        return;
      }
      case "stopped": {
        const { reason: why } = this.#holder.signal;
        const reason = why instanceof CutOffError ? why.message : STOPPING.message;
        await release(broker, this.#principal, lease_id, { delay_seconds: 0, reason });
        return;
      }
      case "canceled": {
        const text = outcome.text?.toWellFormed();
        const message: Message | undefined =
          text === undefined
            ? undefined
            : { messageId: `${lease_id}.canceled`, role: "ROLE_AGENT", parts: [{ text }] };
        const action = { kind: "canceled", ...(message && { message }) } as const;
        await replyA2a(broker, this.#principal, this.#agent, { by: "lease", lease_id }, action, action);
      }
    }
  }

  async #reply(body: unknown): Promise<void> {
    const request = accepted(replyRequestSchema, body);
    await reply(this.#broker, this.#principal, this.#lease.lease_id, request);
  }

  async #artifact({ artifact, append, lastChunk: last_chunk }: Parameters<RelayPort["artifact"]>[0]) {
    const { lease_id } = this.#lease;
    const { callSignal: signal } = this.#holder;
    try {
      // One id for all tries, because the broker may have accepted an earlier one.
      const chunk = { artifact, append, last_chunk, chunk_id: randomId(16) };
      await this.#holder.retry(() => addArtifact(this.#broker, this.#principal, lease_id, chunk), {
        signal,
      });
      return "kept";
    } catch (error) {
      if (isCode(error, "limit_reached")) return "full";
      if (isCode(error, "payload_too_large")) return "too_large";
      throw error;
    }
  }

  async #isOver(): Promise<boolean> {
    const { lost } = this.#holder;
    if (lost === "canceled") return true;
    if (lost !== "expired") return false;
    return read(this.#broker, this.#principal, this.#lease.delegation.id).then(
      ({ finished }) => finished,
      () => false,
    );
  }
}

/** Throws `invalid_request` for output that no request may have either. */
function accepted<T>(schema: z.ZodType<T>, output: unknown): T {
  const { success, data, error } = readAs(schema, wellFormed(output));
  if (success) return data;
  throw invalidRequest(error, { whole: "the agent's output" });
}

/** Only calls that Redis did not serve are repeated: any other error would come every time. */
function judge(error: unknown): Verdict {
  if (isCode(error, "lease_unknown")) return { kind: "lost", reason: "unknown" };
  if (isCode(error, "lease_lost"))
    return { kind: "lost", reason: toLostReason(error.context.details?.reason) };
  const isTransient =
    error instanceof ErrandError
      ? ["redis_unavailable", "overloaded", "rate_limited"].includes(error.code)
      : classify(error) !== null;
  return { kind: isTransient ? "retry" : "refused" };
}

function isCode(error: unknown, code: ErrandError["code"]): error is ErrandError {
  return error instanceof ErrandError && error.code === code;
}

function ignoreLoss(error: unknown): void {
  if (!(error instanceof LeaseLostError)) throw error;
}
