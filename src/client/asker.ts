/**
 * Asks the questions of one lease, and repeats each until the broker accepts it. That parks the delegation and ends the
 * lease, unless the question is already answered: then the lease continues. With `holdSeconds` it first waits that long for
 * the answer, with the lease.
 */
import type { LeaseHolder } from "../lease-holder/lease-holder.ts";
import {
  type InterruptInput,
  type InterruptResult,
  interruptResultSchema,
  type UseResult,
  useResultSchema,
} from "../schema/interrupt.ts";
import { onAbort } from "../util/timing.ts";
import type { Artifacts } from "./artifacts.ts";
import { ErrandApiError, isFull, isInvalid } from "./errors.ts";
import { Ordinals } from "./hash.ts";
import { type Http, route } from "./http.ts";
import type { Outage } from "./outage.ts";
import {
  type Answered,
  type AskOptions,
  type Question,
  toAnswered,
  toInterrupt,
  typed,
} from "./questions.ts";
import { randomKey } from "./random-key.ts";

interface AskerContext {
  readonly http: Http;
  readonly outage: Outage;
  readonly giveUp: AbortSignal;
}

export class Asker {
  readonly #http: Http;
  readonly #outage: Outage;
  readonly #holder: LeaseHolder;
  readonly #artifacts: Artifacts;
  /** Aborts when the agent, while stopping, waits no longer for its handlers. */
  readonly #giveUp: AbortSignal;
  readonly #ordinals = new Ordinals();
  readonly #asking = new Set<Promise<unknown>>();
  /** One question is held at a time; others are asked after it. Undefined until the first one is held. */
  #held: Promise<unknown> | undefined;
  readonly #handlerDone = new AbortController();

  constructor(context: AskerContext, holder: LeaseHolder, artifacts: Artifacts) {
    const { http, outage, giveUp } = context;
    this.#giveUp = giveUp;
    this.#http = http;
    this.#outage = outage;
    this.#holder = holder;
    this.#artifacts = artifacts;
  }

  /** The answers, in the order of the questions. A caller that does not await them gets no unhandled rejection. */
  ask(asked: readonly (string | Question)[], options: AskOptions): Promise<Answered[]> {
    // The ids are derived before any await, because the order of the calls distinguishes equal texts.
    const interrupt = toInterrupt(asked, options, this.#ordinals);
    const holdMs = (options.holdSeconds ?? 0) * 1000;
    const ask = () => this.#ask(interrupt, holdMs);
    const raised = this.#held ? this.#held.then(ask) : ask();
    const answered = raised.then((all) => Promise.all(all.map((one, at) => typed(asked[at], one))));
    if (this.#held || holdMs > 0) this.#held = answered.catch(() => undefined);
    const settled = answered
      .catch(() => undefined)
      .finally(() => {
        this.#asking.delete(settled);
      });
    this.#asking.add(settled);
    return answered;
  }

  /** The handler has ended. Resolves once the broker has accepted or answered all questions; none is held any longer. */
  async settled(): Promise<void> {
    this.#handlerDone.abort();
    await Promise.all(this.#asking);
  }

  async #ask(interrupt: InterruptInput, holdMs: number): Promise<Answered[]> {
    const { callSignal: signal } = this.#holder;
    // The output of this run must be sent first, because the question ends the lease.
    await this.#artifacts.settled();
    const stop = new AbortController();
    // A heartbeat may report the question first; the answer to the call, which has the question's id, is still needed.
    const onLost = () => this.#holder.lost !== "interrupted" && stop.abort(signal.reason);
    const onGiveUp = () => stop.abort(signal.reason);
    const subscriptions = [onAbort(signal, onLost), onAbort(this.#giveUp, onGiveUp)];
    if (signal.aborted) onLost();
    const raised = await this.#hold(interrupt, holdMs, stop.signal).finally(() => {
      for (const unsubscribe of subscriptions) unsubscribe();
    });
    signal.throwIfAborted();
    const { interrupt_id, answers = {} } = raised ?? { interrupt_id: "" };
    return (interrupt.requests ?? []).map(({ request_id = "" }) => {
      const message = answers[request_id]?.message;
      if (!message) throw new Error(`the broker sent no answer to the request '${request_id}'`);
      return toAnswered(interrupt_id, request_id, message);
    });
  }

  /** The same as {@link raise}, but the question is held for this time. */
  async #hold(interrupt: InterruptInput, ms: number, signal: AbortSignal) {
    const until = performance.now() + ms;
    const done = this.#handlerDone.signal;
    for (let left = ms; left > 0 && !done.aborted; left = until - performance.now()) {
      // The call that parks the question says for whom it is kept.
      const { sticky_seconds: _sticky, ...held } = interrupt;
      const raised = await this.raise({ ...held, hold: true }, signal);
      if (raised?.held_until === undefined) return raised;
      const state = interrupt.kind === "auth" ? "auth_required" : "input_required";
      await this.#holder.answered(state, left, signal, done);
      signal.throwIfAborted();
    }
    // Parks the delegation, or returns an answer that came at the last moment.
    return this.raise(interrupt, signal);
  }

  /** Uses the answer; `before`: another call has used it. */
  async use({
    interruptId,
    requestId,
  }: Pick<Answered, "interruptId" | "requestId">): Promise<UseResult["used"]> {
    const path = route`/v1/leases/${this.#holder.lease.lease_id}/use`;
    const body = { interrupt_id: interruptId, request_id: requestId, use_key: randomKey() };
    const { callSignal: signal } = this.#holder;
    for (let failures = 0; ; failures += 1) {
      signal.throwIfAborted();
      try {
        const { used } = await this.#http.request(useResultSchema, { method: "POST", path, body, signal });
        this.#outage.over();
        return used;
      } catch (error) {
        signal.throwIfAborted();
        this.#holder.judge(error);
        signal.throwIfAborted();
        if (isInvalid(error) || isFull(error)) throw error;
        await this.#outage.backOff(error, failures, signal);
      }
    }
  }

  /**
   * Returns the answers; `held_until` if the question is held; undefined if the lease is over, because of this question or for
   * another reason.
   */
  async raise(interrupt: InterruptInput, signal: AbortSignal): Promise<InterruptResult | undefined> {
    const path = route`/v1/leases/${this.#holder.lease.lease_id}/interrupt`;
    // The question may end the lease.
    await this.#holder.reportUsage();
    if (this.#holder.lost !== null) return undefined;
    for (let failures = 0; ; failures += 1) {
      signal.throwIfAborted();
      try {
        const raised = await this.#http.request(interruptResultSchema, {
          method: "POST",
          path,
          body: interrupt,
          signal,
        });
        this.#outage.over();
        if (raised.answers !== undefined || raised.held_until !== undefined) return raised;
        this.#holder.parkQuestion(raised.interrupt_id);
        return undefined;
      } catch (error) {
        signal.throwIfAborted();
        this.#holder.judge(error);
        const { lost } = this.#holder;
        // This question may have ended the lease, and its answer was lost: a repeated call returns the question's id.
        const isRefusal = error instanceof ErrandApiError && error.status !== 0;
        if (lost !== null && (lost !== "interrupted" || isRefusal)) return undefined;
        if (isFull(error)) throw error;
        await this.#outage.backOff(error, failures, signal);
      }
    }
  }
}
