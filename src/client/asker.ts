/**
 * Asks the questions of one lease, and repeats each until the broker accepts it. That parks the delegation and ends the
 * lease, unless the question is already answered: then the lease continues.
 */
import type { LeaseHolder } from "../lease-holder/lease-holder.ts";
import { type InterruptInput, type InterruptResult, interruptResultSchema } from "../schema/interrupt.ts";
import { onAbort } from "../util/timing.ts";
import type { Artifacts } from "./artifacts.ts";
import { ErrandApiError, isFull } from "./errors.ts";
import { Ordinals } from "./hash.ts";
import { type Http, route } from "./http.ts";
import type { Outage } from "./outage.ts";
import { type Answered, type AskOptions, type Question, toAnswered, toInterrupt } from "./questions.ts";

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
    const answered = this.#ask(interrupt);
    const settled = answered
      .catch(() => undefined)
      .finally(() => {
        this.#asking.delete(settled);
      });
    this.#asking.add(settled);
    return answered;
  }

  /** Resolves once the broker has accepted or answered all questions. */
  async settled(): Promise<void> {
    await Promise.all(this.#asking);
  }

  async #ask(interrupt: InterruptInput): Promise<Answered[]> {
    const { callSignal: signal } = this.#holder;
    // The output of this run must be sent first, because the question ends the lease.
    await this.#artifacts.settled();
    const stop = new AbortController();
    // A heartbeat may report the question first; the answer to the call, which has the question's id, is still needed.
    const onLost = () => this.#holder.lost !== "interrupted" && stop.abort(signal.reason);
    const onGiveUp = () => stop.abort(signal.reason);
    const subscriptions = [onAbort(signal, onLost), onAbort(this.#giveUp, onGiveUp)];
    if (signal.aborted) onLost();
    const raised = await this.raise(interrupt, stop.signal).finally(() => {
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

  /** Returns the answers, or undefined when the lease is over, because of this question or for another reason. */
  async raise(interrupt: InterruptInput, signal: AbortSignal): Promise<InterruptResult | undefined> {
    const path = route`/v1/leases/${this.#holder.lease.lease_id}/interrupt`;
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
        if (raised.answers !== undefined) return raised;
        this.#holder.park(raised.interrupt_id);
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
