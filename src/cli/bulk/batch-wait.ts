/**
 * `errand delegate --batch --wait`: waits until each delegation of a batch has ended or asks a question, by one stream
 * of events. A bar on the terminal counts them.
 */
import { Admin } from "../../client/admin.ts";
import { Delegator } from "../../client/delegator.ts";
import type { ConnectionOptions } from "../../client/http.ts";
import { type Delegation, isTerminal, type State } from "../../schema/delegation.ts";
import { TimeLimit } from "../../util/timing.ts";
import type { CliHost } from "../host.ts";
import { StatusLine } from "../show/status-line.ts";
import { cutTo } from "../show/text.ts";
import { bar, elapsedText } from "../show/wait-text.ts";

/** How many delegations are read at once. */
const READS = 8;

export interface BatchWaitOptions {
  readonly timeoutSeconds?: number | undefined;
  readonly json: boolean;
}

export class BatchWait {
  readonly #host: CliHost;
  readonly #delegator: Delegator;
  readonly #filter: { readonly delegator: string };
  readonly #after: string;
  readonly #states = new Map<string, State>();
  /** Delegations that were read and have an open question. */
  readonly #asking = new Set<string>();

  private constructor(host: CliHost, delegator: Delegator, filter: { delegator: string }, after: string) {
    this.#host = host;
    this.#delegator = delegator;
    this.#filter = filter;
    this.#after = after;
  }

  /** Before the batch is sent, so that no event is missed. */
  static async begin(host: CliHost, connection: ConnectionOptions, signal: AbortSignal): Promise<BatchWait> {
    const delegator = new Delegator({ ...connection, failFast: false });
    const filter = { delegator: (await new Admin(connection).status({ signal })).principal };
    return new BatchWait(host, delegator, filter, await delegator.cursor(filter, { signal }));
  }

  /** Returns true when each has ended or asks, and false when the time runs out first. */
  async waitUntilSettled(
    sent: readonly Delegation[],
    { timeoutSeconds = Number.POSITIVE_INFINITY, json }: BatchWaitOptions,
    signal: AbortSignal,
  ): Promise<boolean> {
    for (const { id, state } of sent) this.#states.set(id, state);
    if (await this.#isOver(signal)) return true;
    const line = this.#host.isTty.stderr && !json ? new StatusLine(this.#host.stderr) : undefined;
    const limit = new TimeLimit(timeoutSeconds * 1000, signal);
    const say = () => line?.say((elapsedMs, columns) => cutTo(this.#text(elapsedMs), columns));
    say();
    try {
      const events = this.#delegator.watch(this.#filter, { after: this.#after, signal: limit.signal });
      for await (const event of events) {
        if (event.type === "RESET") await this.#readStates(limit.signal);
        else if (event.type !== "DELEGATION_SNAPSHOT" && this.#states.has(event.delegation_id))
          this.#set(event.delegation_id, event.state);
        if (await this.#isOver(limit.signal)) return true;
        say();
      }
      return await this.#isOver(limit.signal);
    } catch (error) {
      if (limit.expired) return false;
      throw error;
    } finally {
      limit.close();
      line?.pause();
    }
  }

  /** Reads all delegations. */
  async read(signal?: AbortSignal): Promise<Map<string, Delegation>> {
    return this.#readThese([...this.#states.keys()], signal);
  }

  async #readThese(ids: readonly string[], signal?: AbortSignal): Promise<Map<string, Delegation>> {
    const found = new Map<string, Delegation>();
    for (let at = 0; at < ids.length; at += READS) {
      const some = ids.slice(at, at + READS);
      const read = await Promise.all(some.map((id) => this.#delegator.get(id, { signal })));
      for (const delegation of read) found.set(delegation.id, delegation);
    }
    return found;
  }

  /** Reads all states again, because some events are no longer stored. */
  async #readStates(signal: AbortSignal): Promise<void> {
    for (const [id, { state }] of await this.read(signal)) this.#set(id, state);
  }

  #set(id: string, state: State): void {
    this.#states.set(id, state);
    this.#asking.delete(id);
  }

  /** Reads a delegation that asks before it counts as over: if its question was approved in advance, it continues. */
  async #isOver(signal: AbortSignal): Promise<boolean> {
    const states = [...this.#states];
    if (!states.every(([, state]) => isTerminal(state) || isAsking(state))) return false;
    const unread = states.flatMap(([id, state]) => (isAsking(state) && !this.#asking.has(id) ? [id] : []));
    for (const [id, { state, interrupt }] of await this.#readThese(unread, signal)) {
      // Without an open question, another event follows.
      this.#set(id, isAsking(state) && interrupt === null ? "submitted" : state);
      if (interrupt !== null) this.#asking.add(id);
    }
    return [...this.#states].every(([id, state]) => isTerminal(state) || this.#asking.has(id));
  }

  #text(elapsedMs: number): string {
    const states = [...this.#states.values()];
    const count = (is: (state: State) => boolean) => states.filter(is).length;
    const done = count((state) => state === "completed");
    const failed = count(isTerminal) - done;
    const asks = count(isAsking);
    const waiting = states.length - done - failed - asks;
    return [
      `waiting ${elapsedText(elapsedMs)}: ${bar(states.length - waiting, states.length)} ${done} done`,
      `${failed} failed`,
      ...(asks > 0 ? [`${asks} ${asks === 1 ? "asks" : "ask"}`] : []),
      `${waiting} waiting`,
    ].join(", ");
  }
}

const isAsking = (state: State): boolean => state.endsWith("_required");
