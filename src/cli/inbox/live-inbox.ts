/**
 * The entries of an inbox, kept current by the event stream. A delegation that an event concerns is read again, because
 * events do not contain questions.
 */
import { Delegator } from "../../client/delegator.ts";
import { ErrandApiError } from "../../client/errors.ts";
import type { ConnectionOptions } from "../../client/http.ts";
import { Pages } from "../../client/pages.ts";
import { type Delegation, isTerminal } from "../../schema/delegation.ts";
import type { StreamEvent } from "../../schema/event.ts";
import { BoundedMap } from "../../util/bounded.ts";
import { sleep } from "../../util/timing.ts";
import { mayAnswer } from "../rights.ts";
import { whyClosed } from "../show/questions.ts";
import { belongs, type Entry, inOrder, isQuestion, seenNow, toEntry } from "./entry.ts";
import { MAX_RESULTS, readInbox, type Scope } from "./read.ts";

/** Beyond this many changed delegations, the lists are read again instead. */
const MANY = 20;
/** Changes that arrive together are read together. */
const TOGETHER_MS = 50;
const REMEMBERED = 256;

export class LiveInbox {
  readonly #connection: ConnectionOptions;
  readonly #scope: Scope;
  readonly #changed: () => void;
  readonly #entries = new Map<string, Entry>();
  readonly #stale = new Set<string>();
  /** By the question's id: why it is no longer open. */
  readonly #closed = new BoundedMap<string, string>(REMEMBERED);
  #isAllStale = true;
  #areVotesStale = false;
  /** When they became stale last. */
  #votesStaleAt = 0;
  #wake: () => void = () => undefined;
  isLoaded = false;

  constructor(connection: ConnectionOptions, scope: Scope, changed: () => void) {
    this.#connection = connection;
    this.#scope = scope;
    this.#changed = changed;
  }

  get entries(): readonly Entry[] {
    const entries = inOrder([...this.#entries.values()].map((one) => seenNow(one, this.#scope.counted)));
    const questions = entries.filter(isQuestion).length;
    // The oldest results make room for new ones.
    for (const { id } of entries.splice(questions + MAX_RESULTS)) this.#entries.delete(id);
    return entries;
  }

  entry(id: string): Entry | undefined {
    const entry = this.#entries.get(id);
    return entry && seenNow(entry, this.#scope.counted);
  }

  /** Why the question is no longer open, if it is known. */
  whyClosed(interruptId: string): string | undefined {
    return this.#closed.get(interruptId);
  }

  /** Throws when the broker refuses a call, or the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const delegator = new Delegator(this.#connection);
    // The cursor first and the lists second, so that nothing falls between them.
    const after = await delegator.cursor({}, { signal });
    await Promise.all([this.#watch(delegator, after, signal), this.#refresh(delegator, signal)]);
  }

  /** Reads the delegation again. */
  markStale(id: string): void {
    this.#stale.add(id);
    this.#wake();
  }

  /** Reads again whose approvals count, at most once in this time: it changes without an event. */
  markVotesStale(everyMs = 0): void {
    const now = this.#scope.counted.now();
    if (!this.isLoaded || now - this.#votesStaleAt < everyMs) return;
    this.#votesStaleAt = now;
    this.#areVotesStale = true;
    this.#wake();
  }

  /** Applies the delegation as the broker returned it. */
  apply(delegation: Delegation): void {
    const { id, version } = delegation;
    const known = this.#entries.get(id);
    if (known && known.version > version) return;
    const entry = toEntry(delegation, this.#scope.principal);
    if (known && isQuestion(known) && entry.interrupt?.id !== known.interrupt.id)
      this.#closed.set(known.interrupt.id, whyClosed(delegation, known.interrupt));
    if (belongs(this.#scope.principal, this.#scope.since, entry)) this.#entries.set(id, entry);
    else this.#entries.delete(id);
    this.#changed();
  }

  async #watch(delegator: Delegator, after: string, signal: AbortSignal): Promise<void> {
    for await (const event of delegator.watch({}, { after, signal })) {
      if (event.type === "RESET") {
        this.#isAllStale = true;
        this.#wake();
      } else if (this.#concerns(event)) this.markStale(event.delegation_id);
    }
  }

  #concerns(event: StreamEvent): boolean {
    if (event.type === "RESET" || event.type === "DELEGATION_SNAPSHOT") return true;
    if (this.#entries.has(event.delegation_id)) return true;
    const { principal } = this.#scope;
    if (event.status === "interrupted") return mayAnswer(principal, event);
    return isTerminal(event.state) && event.delegator === principal;
  }

  async #refresh(delegator: Delegator, signal: AbortSignal): Promise<void> {
    signal.addEventListener("abort", () => this.#wake());
    while (!signal.aborted) {
      const ids = [...this.#stale];
      this.#stale.clear();
      if (this.#isAllStale || ids.length > MANY) await this.#readAll(signal);
      else for (const id of ids) await this.#read(delegator, id, signal);
      if (this.#areVotesStale) await this.#readVotes();
      if (this.#stale.size > 0 || this.#isAllStale || this.#areVotesStale) continue;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      await sleep(TOGETHER_MS, signal);
    }
  }

  async #readVotes(): Promise<void> {
    this.#areVotesStale = false;
    await this.#scope.counted.read(this.#entries.values(), 0);
    this.#changed();
  }

  async #readAll(signal: AbortSignal): Promise<void> {
    this.#isAllStale = false;
    this.#votesStaleAt = this.#scope.counted.now();
    const found = await readInbox(new Pages(this.#connection), this.#scope, signal);
    const ids = new Set(found.map(({ id }) => id));
    for (const { id } of this.entries) {
      if (ids.has(id)) continue;
      // Its question is over; the delegation itself says why.
      if (this.#entries.get(id)?.interrupt) this.#stale.add(id);
      else this.#entries.delete(id);
    }
    for (const delegation of found) this.apply(delegation);
    this.isLoaded = true;
    this.#changed();
  }

  async #read(delegator: Delegator, id: string, signal: AbortSignal): Promise<void> {
    try {
      const delegation = await delegator.get(id, { signal });
      await this.#scope.counted.read([delegation]);
      this.apply(delegation);
    } catch (error) {
      if (!(error instanceof ErrandApiError) || error.status !== 404) throw error;
      this.#entries.delete(id);
      this.#changed();
    }
  }
}
