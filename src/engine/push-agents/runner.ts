/**
 * Relays the work of push agents to their A2A servers: each agent with work has a loop here that leases it and runs the
 * relay. Every gateway does this; the lease decides which one does the work.
 */
import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { type ReadDelegation, readRecord } from "../../lifecycle/stored-delegation.ts";
import type { OutboundJob } from "../../queue/outbound-queue.ts";
import { cancelOrphanedTask } from "../../relay/orphaned-task.ts";
import { LONGEST_PAUSE_MS, type RelayOutcome } from "../../relay/port.ts";
import { relay } from "../../relay/relay.ts";
import { Remote } from "../../relay/remote.ts";
import { NO_SERVER, RemoteError } from "../../relay/remote-error.ts";
import { type Lease, leaseSchema, type WorkerPause } from "../../schema/lease.ts";
import { Breaker, type Ended, FAILURES_IN_A_ROW, type Permit } from "../../util/breaker.ts";
import { TimeLimit } from "../../util/timing.ts";
import { toPrincipal } from "../access/access.ts";
import { warn } from "../after-move.ts";
import { type DeliveryCredentials, sameCredentials } from "../agents/delivery-credentials.ts";
import type { Broker, PushAgentService } from "../broker.ts";
import { toDelegation } from "../delegations/parse.ts";
import { lease } from "../leases/lease.ts";
import { formatWake } from "../leases/wake-message.ts";
import { EgressRefusedError } from "../outbound/egress.ts";
import { type HolderVerbs, PushAgentLease } from "./lease.ts";

/** The most leases of one agent that one gateway holds at a time. Until a task has shown that the server works, fewer. */
const AT_ONCE = 32;
const PAUSE_MS = 1_000;
/** How often the list of push agents is read again: a gateway may die before it publishes a change. */
const RELOAD_MS = 15_000;
/** How long a loop waits for work before it ends, unless delayed or blocked work is queued. */
const WAIT_SECONDS = 10;

/** How long a server, with its credentials, is remembered after its agent was deleted or changed. */
const FORGET_MS = 60_000;

/** Time for the gateway that holds the lease to cancel the task itself. */
const SETTLE_MS = 1_000;
/** The time limit of one try. */
const CANCEL_MS = 20_000;
const CANCEL_LONGEST_RETRY_MS = 600_000;
const CANCEL_GIVE_UP_MS = 86_400_000;

const cancelJob = (delegation_id: string): OutboundJob => ({ kind: "cancel", delegation_id });

interface Loop {
  /** The loop was woken since it last asked for work. */
  again: boolean;
}

/** The agent has answered, so its server works. A failed task is the agent's word, and is not sent again. */
function endOf(outcome: RelayOutcome, id: string): Ended | undefined {
  if (outcome.kind === "stopped") return undefined;
  if (outcome.kind === "release") return { kind: "unable", id, reason: outcome.pause };
  const failed = outcome.kind === "reply" && outcome.reply.state === "failed";
  return failed
    ? { kind: "failed", id, code: outcome.reply.error?.code ?? "agent_error" }
    : { kind: "worked" };
}

const NOT_PUSHED: RelayOutcome = {
  kind: "release",
  delaySeconds: 1,
  reason: "the agent is no longer a push agent",
  pause: NO_SERVER,
};

interface Server {
  readonly url: string;
  readonly credentials: DeliveryCredentials | null;
  readonly remote: Remote;
  /** When its agent stopped being a push agent, by `performance.now()`. */
  goneAt: number | null;
}

type RunnerNeeds = HolderVerbs &
  Pick<Broker, "bulk" | "bus" | "readLimiter" | "clock" | "egress" | "gateway" | "hostLimiter" | "outbound">;

export class PushAgentRunner implements PushAgentService {
  readonly #broker: () => RunnerNeeds;
  readonly #waitSeconds: number;
  #names: ReadonlySet<string> = new Set();
  readonly #loops = new Map<string, Loop>();
  readonly #servers = new Map<string, Server>();
  /** One for each push agent, for as long as its loop runs or it pauses. */
  readonly #breakers = new Map<string, Breaker>();
  readonly #running = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  /** True until a check of all agents succeeds. */
  #isCheckDue = false;

  constructor(broker: () => RunnerNeeds, waitSeconds = WAIT_SECONDS) {
    this.#broker = broker;
    this.#waitSeconds = waitSeconds;
    // The parked poll of every push agent listens to it.
    setMaxListeners(0, this.#stopping.signal);
  }

  has(agent: string): boolean {
    return this.#names.has(agent);
  }

  /** Reads the list of push agents, and checks for their work in the background. */
  async start(): Promise<void> {
    await this.#load();
    this.recheckAll();
    this.#timer = setInterval(
      () => (this.#isCheckDue ? this.recheckAll() : this.#reload()),
      RELOAD_MS,
    ).unref();
  }

  /** Releases the leases that are held; no attempt is spent. */
  async stop(graceMs: number): Promise<void> {
    clearInterval(this.#timer);
    this.#stopping.abort("the gateway is stopping");
    const late = new AbortController();
    await Promise.race([
      Promise.allSettled(this.#running),
      sleep(graceMs, undefined, { signal: late.signal }).catch(() => {}),
    ]);
    late.abort();
  }

  /** Notifies all gateways that an agent became or stopped being a push agent, or that its server changed. */
  async publishChange(agent: string): Promise<void> {
    const { bus, shards, gateway } = this.#broker();
    this.#breakers.get(agent)?.reset();
    await this.#load();
    const message = formatWake({ from: gateway, wake: { kind: "push_agents" } });
    await bus.publish(shards.ofAgent(agent).wake, message);
  }

  /** Call it when another gateway published a change. It wakes new push agents, because earlier wakes were ignored. */
  reload(): void {
    // One of the servers may have changed.
    for (const breaker of this.#breakers.values()) breaker.reset();
    this.#reload();
  }

  #reload(): void {
    const before = this.#names;
    const work = this.#load().then(() =>
      this.#wakeWithWork([...this.#names].filter((name) => !before.has(name))),
    );
    void this.#track(work);
  }

  /** Checks all push agents for work, because wakes may have been lost. */
  recheckAll(): void {
    this.#isCheckDue = true;
    const work = this.#load().then(() => this.#wakeWithWork(this.#names));
    void this.#track(
      work.then(() => {
        this.#isCheckDue = false;
      }),
    );
  }

  /** Call it when the agent's queue may have work. */
  wake(agent: string): void {
    if (!this.#names.has(agent) || this.#stopping.signal.aborted) return;
    const known = this.#loops.get(agent);
    if (known) {
      known.again = true;
      return;
    }
    const loop = { again: false };
    this.#loops.set(agent, loop);
    void this.#track(this.#work(agent, loop));
  }

  /** The jobs that cancel the task of a delegation which ended without its agent: one, or none. */
  cancelJobs(record: ReadDelegation): readonly OutboundJob[] {
    return record.get("orphaned") === 1 ? [cancelJob(record.id)] : [];
  }

  /** Call it when a delegation ended without its agent's reply: queues the cancel of the server's task. */
  async queueTaskCancel(agent: string, delegation_id: string): Promise<void> {
    if (!this.#names.has(agent)) return;
    const broker = this.#broker();
    await broker.outbound
      .add(cancelJob(delegation_id))
      .catch((error: unknown) => warn(broker, error, "cancel of a push agent's task not queued"));
  }

  /** Tries once to cancel the task of a delegation that ended. Returns null when done, or the delay of the next try, ms. */
  async cancelTaskOf(delegation_id: string, stopping: AbortSignal): Promise<number | null> {
    const { redis, shards, writer } = this.#broker();
    const record = await readRecord(redis, shards, delegation_id);
    if (!record) return null;
    const again = await this.#cancelTask(record, stopping);
    if (again === null && record.get("orphaned") === 1)
      await writer.move({ move: "follow_up", id: delegation_id, params: { task_canceled: true } });
    return again;
  }

  async #cancelTask(record: ReadDelegation, stopping: AbortSignal): Promise<number | null> {
    const { clock, hostLimiter, log } = this.#broker();
    const checkpoint = record.get("checkpoint");
    if (!record.finished || checkpoint === null) return null;
    const { id: delegation_id } = record;
    const target = record.get("target");
    const delegation = toDelegation(record);
    const age = Date.now() + clock.offset_ms - Date.parse(delegation.finished_at ?? delegation.updated_at);
    if (age < SETTLE_MS) return SETTLE_MS - age;
    await this.#serverOf(target);
    // Also the last known server of an agent that is no longer a push agent.
    const server = this.#servers.get(target);
    if (!server) return null;
    const slot = hostLimiter.acquire(new URL(server.url).host, record.get("delegator"));
    if (typeof slot === "number") return slot;
    const limit = new TimeLimit(CANCEL_MS, stopping);
    try {
      await cancelOrphanedTask(
        server.remote,
        { ...delegation, checkpoint: JSON.parse(checkpoint) },
        limit.signal,
      );
      return null;
    } catch {
      const isGivenUp = age > CANCEL_GIVE_UP_MS;
      log.info({ delegation_id, agent: target, given_up: isGivenUp }, "the task was not canceled");
      return isGivenUp ? null : Math.min(CANCEL_LONGEST_RETRY_MS, Math.max(SETTLE_MS, age));
    } finally {
      limit.close();
      slot();
    }
  }

  /** Starts a loop for each agent that has work, one after the other. */
  async #wakeWithWork(names: Iterable<string>): Promise<void> {
    for (const name of names) {
      if (this.#stopping.signal.aborted) return;
      const { waiting, delayed } = await this.#broker().agents.counts(name);
      if (waiting + delayed > 0) this.wake(name);
    }
  }

  async #load(): Promise<void> {
    this.#names = new Set(await this.#broker().agents.pushAgents());
    this.#forgetServers();
  }

  /** Not at once, because tasks of a deleted agent may have to be canceled. */
  #forgetServers(): void {
    const now = performance.now();
    for (const [name, server] of this.#servers) {
      if (this.#names.has(name)) server.goneAt = null;
      else server.goneAt ??= now;
      if (server.goneAt !== null && now - server.goneAt > FORGET_MS) this.#servers.delete(name);
    }
  }

  #track(work: Promise<void>): Promise<void> {
    const tracked = work
      .catch((error: unknown) => warn(this.#broker(), error, "push agent not served"))
      .finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
    return tracked;
  }

  /** Leases the agent's delegations and starts a run for each, until its queue is empty. */
  async #work(agent: string, loop: Loop): Promise<void> {
    const { signal } = this.#stopping;
    const runs = new Set<Promise<void>>();
    const breaker = this.#breakerOf(agent);
    for (let more = true; more && this.#names.has(agent) && !signal.aborted; ) {
      try {
        if (runs.size >= (breaker.isProven ? AT_ONCE : FAILURES_IN_A_ROW)) {
          await Promise.race([...runs, breaker.changed(signal)]);
          continue;
        }
        const permit = await breaker.enter(signal);
        loop.again = false;
        const granted = await this.#lease(agent, permit).catch((error: unknown) => {
          breaker.leave(permit);
          throw error;
        });
        if (granted) {
          breaker.began(permit);
          const run = this.#track(this.#serve(agent, granted, permit)).finally(() => runs.delete(run));
          runs.add(run);
        } else {
          breaker.leave(permit);
          const { waiting, delayed } = await this.#broker().agents.counts(agent);
          more = loop.again || breaker.isOpen || waiting + delayed > 0;
        }
      } catch (error) {
        if (signal.aborted) break;
        warn(this.#broker(), error, "work of a push agent not leased");
        await sleep(PAUSE_MS, undefined, { signal }).catch(() => {});
      }
    }
    this.#loops.delete(agent);
    // Runs that have not ended still tell it how they end.
    if (!breaker.isOpen) this.#breakers.delete(agent);
    if (!this.#names.has(agent)) {
      this.#servers.delete(agent);
      this.#breakers.delete(agent);
    }
  }

  #breakerOf(agent: string): Breaker {
    const known = this.#breakers.get(agent);
    if (known) return known;
    const { log } = this.#broker();
    const breaker = new Breaker({
      longestPauseMs: LONGEST_PAUSE_MS,
      onPause: ({ ms, reason }) => log.warn({ agent, pause_ms: ms, reason }, "the push agent is paused"),
      onResume: () => log.info({ agent }, "the push agent works again"),
    });
    this.#breakers.set(agent, breaker);
    return breaker;
  }

  get #workerId(): string {
    return `gateway-${this.#broker().gateway}`;
  }

  async #lease(agent: string, { signal }: Permit): Promise<Lease | undefined> {
    const broker = this.#broker();
    const wanted = { wait_seconds: this.#waitSeconds, max: 1, worker_id: this.#workerId };
    const principal = toPrincipal(`agent:${agent}`);
    const [granted] = await lease(broker, principal, agent, wanted, signal);
    return granted && leaseSchema.parse(JSON.parse(granted.json));
  }

  async #serve(agent: string, granted: Lease, permit: Permit): Promise<void> {
    const broker = this.#broker();
    const held = new PushAgentLease(broker, agent, granted, this.#stopping.signal);
    const breaker = this.#breakers.get(agent);
    const server = await this.#serverOf(agent).catch(() => undefined);
    try {
      const outcome = server ? await relay(held.port(), server) : NOT_PUSHED;
      await this.#writePresence(agent, outcome);
      await held.end(outcome, this.#judge(agent, outcome, granted, permit));
    } finally {
      breaker?.leave(permit);
      held.close();
    }
  }

  /** Returns the pause that the outcome begins, as it is shown with the agent. */
  #judge(
    agent: string,
    outcome: RelayOutcome,
    { delegation }: Lease,
    permit: Permit,
  ): WorkerPause | undefined {
    const ended = endOf(outcome, delegation.id);
    const pause = ended && this.#breakers.get(agent)?.end(permit, ended);
    if (pause === undefined && ended?.kind !== "unable") return undefined;
    const { ms = 0, reason = ended?.kind === "unable" ? ended.reason : NO_SERVER } = pause ?? {};
    return { id: this.#workerId, paused_seconds: ms / 1000, reason };
  }

  async #serverOf(agent: string): Promise<Remote | undefined> {
    const { agents, egress } = this.#broker();
    const delivery = (await agents.find(agent))?.spec.delivery;
    if (delivery?.mode !== "push") return undefined;
    const { url } = delivery;
    const credentials = await agents.credentialsOf(agent, delivery);
    const known = this.#servers.get(agent);
    if (known?.url === url && sameCredentials(known.credentials, credentials)) return known.remote;
    const remote = new Remote({
      url,
      headers: credentials?.toHeaders(),
      // Delegators may not see the address of the server.
      nameOf: ({ pathname }) => `the A2A server (${pathname})`,
      fetch: async (target, init) => {
        try {
          return await egress.open(target, init);
        } catch (error) {
          if (!isRefused(error)) throw error;
          throw new RemoteError("refused", "the broker may not call the address of the A2A server");
        }
      },
    });
    this.#servers.set(agent, { url, credentials, remote, goneAt: null });
    return remote;
  }

  /** The relay releases work only when the agent's server cannot be reached. */
  async #writePresence(agent: string, outcome: RelayOutcome): Promise<void> {
    if (outcome.kind === "stopped") return;
    const since = outcome.kind === "release" ? Date.now() : null;
    await this.#broker()
      .agents.setUnreached(agent, since)
      .catch((error: unknown) => warn(this.#broker(), error, "presence of a push agent not written"));
  }
}

/** True when {@link Egress} refused the address, perhaps while connecting. */
function isRefused(error: unknown): boolean {
  return (
    error instanceof EgressRefusedError ||
    (error instanceof Error && error.cause instanceof EgressRefusedError)
  );
}
