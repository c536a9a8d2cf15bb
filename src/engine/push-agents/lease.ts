/**
 * One lease that a gateway holds for a push agent, and the relay's port over it: beats, progress, artifacts, the end, by
 * the same verbs as every other call. Half characters in the agent's output become U+FFFD. Limit: what Redis does not
 * answer in the lease's time is left to its expiry.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { randomId } from "../../redis/shards.ts";
import type { RelayOutcome, RelayPort } from "../../relay/port.ts";
import { artifactSchema, isFollowUp, type Message } from "../../schema/a2a.ts";
import { isTerminal } from "../../schema/delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import { interruptRequestSchema } from "../../schema/interrupt.ts";
import { type Lease, replyRequestSchema } from "../../schema/lease.ts";
import { wellFormed } from "../../schema/text.ts";
import { type Principal, toPrincipal } from "../access/access.ts";
import { warn } from "../after-move.ts";
import type { Broker } from "../broker.ts";
import { read } from "../delegations/read.ts";
import { replyA2a as stitchReply } from "../leases/a2a-reply.ts";
import { addArtifact } from "../leases/artifacts.ts";
import { heartbeat } from "../leases/heartbeat.ts";
import { release } from "../leases/release.ts";
import { reply } from "../leases/reply.ts";
import { ask } from "../questions/ask.ts";

const PROGRESS_EVERY_MS = 500;
const AGAIN_MS = 500;
const LONGEST_HOLD_SECONDS = 25;
const SOON_MS = 100;
/** A gateway that stops tries no longer. */
const LAST_WORDS_MS = 1_000;

/** Why the relay's run stops. */
class Stopped extends Error {
  override readonly name = "Stopped";
  readonly reason: string;

  constructor(reason: string) {
    super(`the lease is gone: ${reason}`);
    this.reason = reason;
  }
}

export class PushAgentLease {
  readonly #broker: Broker;
  readonly #agent: string;
  readonly #principal: Principal;
  readonly #lease: Lease;
  readonly #leaseMs: number;
  readonly #run = new AbortController();
  readonly #beating = new AbortController();
  readonly #stopping: AbortSignal;
  readonly #stop: () => void;
  readonly #messages: Message[] = [];
  readonly #ids = new Set<string>();
  readonly #listeners: ((message: Message) => void)[] = [];
  #trustedUntil: number;
  #lost: string | null = null;
  #progress: string | undefined;
  #saidAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(broker: Broker, agent: string, lease: Lease, stopping: AbortSignal) {
    this.#broker = broker;
    this.#agent = agent;
    this.#principal = toPrincipal(`agent:${agent}`);
    this.#lease = lease;
    this.#stopping = stopping;
    const { lease: granted, history } = lease.delegation;
    this.#leaseMs = granted ? Date.parse(granted.expires_at) - Date.parse(granted.granted_at) : 60_000;
    this.#trustedUntil = performance.now() + this.#leaseMs;
    this.#arrived(history.filter(isFollowUp));
    this.#stop = () => this.#run.abort(new Stopped("stopping"));
    stopping.addEventListener("abort", this.#stop, { once: true });
    if (stopping.aborted) this.#stop();
    void this.#keep();
  }

  port(): RelayPort {
    const { id } = this.#lease.delegation;
    return {
      lease: this.#lease,
      signal: this.#run.signal,
      isOver: () => this.#isOver(),
      saveCheckpoint: async (checkpoint) => {
        // A task that is learned of while the gateway stops is kept for the next.
        await this.#insist(() => this.#beat({ checkpoint }), false);
      },
      progress: (message) => this.#say(message),
      artifact: (chunk) =>
        this.#artifact({ ...chunk, artifact: artifactSchema.parse(wellFormed(chunk.artifact)) }),
      onMessage: (listener) => {
        this.#listeners.push(listener);
        for (const message of this.#messages) listener(message);
      },
      note: (what) => this.#broker.log.info({ delegation_id: id, agent: this.#agent }, what),
    };
  }

  /** Says the outcome to the record; a run that was stopped gives its lease back. */
  async end(outcome: RelayOutcome): Promise<void> {
    clearTimeout(this.#timer);
    if (this.#lost !== null) return;
    try {
      await this.#insist(() => this.#settle(outcome), false);
    } catch (error) {
      if (!(error instanceof ErrandError)) throw error;
      if (["lease_lost", "lease_unknown"].includes(error.code)) return;
      const why = { code: error.code, message: `the broker refused the agent's reply: ${error.message}` };
      await this.#insist(() => this.#reply({ state: "failed", error: why }), false);
    }
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#stopping.removeEventListener("abort", this.#stop);
    this.#beating.abort("the lease is closed");
  }

  async #settle(outcome: RelayOutcome): Promise<void> {
    const broker = this.#broker;
    const { lease_id } = this.#lease;
    switch (outcome.kind) {
      case "reply":
        return this.#reply(outcome.reply);
      case "ask": {
        const asked = interruptRequestSchema.parse(wellFormed(outcome.interrupt));
        await ask(broker, this.#principal, lease_id, asked);
        return;
      }
      case "release": {
        const { delaySeconds: delay_seconds } = outcome;
        const reason = outcome.reason.toWellFormed();
        await release(broker, this.#principal, lease_id, { delay_seconds, reason });
        return;
      }
      case "stopped":
        await release(broker, this.#principal, lease_id, {
          delay_seconds: 0,
          reason: "the gateway is stopping",
        });
        return;
      case "canceled": {
        const text = outcome.text?.toWellFormed();
        const message: Message | undefined =
          text === undefined
            ? undefined
            : { messageId: `${lease_id}.canceled`, role: "ROLE_AGENT", parts: [{ text }] };
        const action = { kind: "canceled", ...(message && { message }) } as const;
        await stitchReply(broker, this.#principal, this.#agent, { by: "lease", lease_id }, action, action);
      }
    }
  }

  async #reply(body: unknown): Promise<void> {
    await reply(
      this.#broker,
      this.#principal,
      this.#lease.lease_id,
      replyRequestSchema.parse(wellFormed(body)),
    );
  }

  /** Held heartbeats, one after the other, so that a cancel and a follow-up arrive at once. */
  async #keep(): Promise<void> {
    const wait_seconds = Math.min(LONGEST_HOLD_SECONDS, this.#leaseMs / 3000);
    const { signal } = this.#beating;
    while (this.#lost === null && !signal.aborted) {
      const askedAt = performance.now();
      try {
        await this.#beat({ wait_seconds });
        // Told at once: nothing new, or a feed that is away.
        if (performance.now() - askedAt < SOON_MS)
          await sleep(SOON_MS, undefined, { signal }).catch(() => {});
      } catch (error) {
        if (signal.aborted || this.#judge(error)) return;
        if (performance.now() > this.#trustedUntil) return this.#lose("expired");
        await sleep(Math.min(AGAIN_MS, this.#leaseMs / 6), undefined, { signal }).catch(() => {});
      }
    }
  }

  async #beat(said: Partial<Parameters<typeof heartbeat>[3]>): Promise<void> {
    const askedAt = performance.now();
    const seen = this.#listeners.length > 0 ? this.#messages.at(-1)?.messageId : undefined;
    const request = { wait_seconds: 0, ...said, ...(seen !== undefined && { seen }) };
    const beaten = await heartbeat(
      this.#broker,
      this.#principal,
      this.#lease.lease_id,
      request,
      this.#beating.signal,
    );
    this.#trustedUntil = Math.max(this.#trustedUntil, askedAt + this.#leaseMs);
    this.#arrived(beaten.messages);
  }

  #arrived(messages: readonly Message[]): void {
    for (const message of messages) {
      if (this.#ids.has(message.messageId)) continue;
      this.#ids.add(message.messageId);
      this.#messages.push(message);
      for (const listener of this.#listeners) listener(message);
    }
  }

  /** Until Redis answers, or the lease is lost. `stops`: not past the run's end. */
  async #insist<T>(ask: () => Promise<T>, stops = true): Promise<T> {
    const askedAt = performance.now();
    for (;;) {
      if (stops) this.#run.signal.throwIfAborted();
      try {
        return await ask();
      } catch (error) {
        const until = this.#stopping.aborted ? askedAt + LAST_WORDS_MS : this.#trustedUntil;
        if (this.#judge(error) || !isPassing(error) || performance.now() > until) throw error;
        await sleep(AGAIN_MS);
      }
    }
  }

  async #artifact({ artifact, append, lastChunk: last_chunk }: Parameters<RelayPort["artifact"]>[0]) {
    const { lease_id } = this.#lease;
    try {
      // One id for all tries, because an earlier try may have been kept.
      const chunk = { artifact, append, last_chunk, chunk_id: randomId(16) };
      await this.#insist(() => addArtifact(this.#broker, this.#principal, lease_id, chunk));
      return "kept";
    } catch (error) {
      if (isCode(error, "limit_reached")) return "full";
      if (isCode(error, "payload_too_large")) return "too_large";
      throw error;
    }
  }

  /** At most two a second, the latest wins. */
  #say(message: string): void {
    this.#progress = message.toWellFormed();
    if (this.#timer !== undefined) return;
    const dueMs = Math.max(0, this.#saidAt + PROGRESS_EVERY_MS - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#saidAt = performance.now();
      const said = this.#progress;
      if (said === undefined || this.#lost !== null) return;
      this.#beat({ progress: { message: said } }).catch((error: unknown) => void this.#judge(error));
    }, dueMs);
  }

  async #isOver(): Promise<boolean> {
    if (this.#lost === "canceled") return true;
    if (this.#lost !== "expired") return false;
    return read(this.#broker, this.#principal, this.#lease.delegation.id).then(
      ({ state }) => isTerminal(state),
      () => false,
    );
  }

  /** Whether the failure says that the lease is gone. */
  #judge(error: unknown): boolean {
    if (!isCode(error, "lease_lost") && !isCode(error, "lease_unknown")) return false;
    this.#lose(String(error.context.details?.reason ?? "unknown"));
    return true;
  }

  #lose(reason: string): void {
    if (this.#lost !== null) return;
    this.#lost = reason;
    this.#run.abort(new Stopped(reason));
    if (reason === "unknown") warn(this.#broker, this.#run.signal.reason, "lease of a push agent lost");
  }
}

function isCode(error: unknown, code: ErrandError["code"]): error is ErrandError {
  return error instanceof ErrandError && error.code === code;
}

/** Anything that is no refusal: Redis is away. */
function isPassing(error: unknown): boolean {
  if (!(error instanceof ErrandError)) return true;
  return ["redis_unavailable", "overloaded", "rate_limited"].includes(error.code);
}
