/**
 * One delegation handed to an A2A server, from its lease to its end or until the lease goes. It keeps nothing but its
 * checkpoint: whoever leases the delegation next goes on with the same remote task. Limit: a message whose answer was
 * never heard is sent again unless the server lists its tasks.
 */
import { type Message, textOf } from "../schema/a2a.ts";
import { patience, pause } from "./backoff.ts";
import { FollowUps } from "./follow-ups.ts";
import { type Mark, readMark, turnsIn } from "./mark.ts";
import { canceled, cut, failed, lost, question, reply, tooLarge, waiting } from "./outcomes.ts";
import { Output, TooLargeError } from "./output.ts";
import type { Parked } from "./parked.ts";
import type { RelayOutcome, RelayPort } from "./port.ts";
import { isSame, type Remote, type Session } from "./remote.ts";
import { RemoteError, toRemoteError } from "./remote-error.ts";
import type { RemoteStatus, RemoteTask, Update } from "./updates.ts";

/** A canceled delegation whose task is not known yet waits so long to learn of it. */
const LINGER_MS = 5_000;
/** A task may still be where it was for a moment after it was answered. */
const STALE_MS = 5_000;
const PROGRESS_MAX = 4096;

/** Never throws: whatever goes wrong is an outcome. */
export async function relay(port: RelayPort, remote: Remote, parked: Parked): Promise<RelayOutcome> {
  const { id } = port.lease.delegation;
  const run = new Run(port, remote);
  parked.delete(id);
  const outcome = await run.run();
  const waits = outcome.kind === "ask" || outcome.kind === "release";
  if (waits && run.task !== undefined) parked.add(id, remote, run.task);
  return outcome;
}

class Run {
  readonly #port: RelayPort;
  readonly #remote: Remote;
  readonly #output: Output;
  readonly #followUps: FollowUps;
  /** Aborts what is under way with the remote. */
  readonly #calls = new AbortController();
  readonly #turns: number;
  #mark: Mark;
  /** How the question looked that was just answered. */
  #stale: { readonly status: string; readonly until: number } | undefined;
  #broken: { readonly error: unknown } | undefined;
  #sending = false;
  #saved: Promise<void> = Promise.resolve();

  constructor(port: RelayPort, remote: Remote) {
    this.#port = port;
    this.#remote = remote;
    this.#output = new Output(port, (error) => this.#break(error));
    this.#turns = turnsIn(port.lease.delegation.history);
    this.#mark = readMark(port.lease.checkpoint) ?? { turn: this.#turns, said: 0 };
    this.#followUps = new FollowUps({
      said: this.#mark.said,
      say: (message) => this.#say(message),
      count: () => this.#save({ ...this.#mark, said: this.#mark.said + 1 }),
      onError: (error) => this.#break(error),
    });
  }

  get task(): string | undefined {
    return this.#mark.task;
  }

  async run(): Promise<RelayOutcome> {
    const { signal } = this.#port;
    const stop = () => this.#stop();
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    try {
      const session = await this.#remote.open(this.#calls.signal);
      this.#port.onMessage((message) => this.#followUps.add(message));
      return await this.#start(session);
    } catch (thrown) {
      const error = this.#broken?.error ?? thrown;
      if (signal.aborted) {
        await this.#giveUp();
        return { kind: "stopped" };
      }
      return await this.#fail(error);
    } finally {
      signal.removeEventListener("abort", stop);
      this.#followUps.end();
      this.#output.stop();
      this.#calls.abort();
    }
  }

  /** A task that is about to be made is waited for: it may have to be canceled. */
  #stop(): void {
    const abort = () => this.#calls.abort(this.#port.signal.reason);
    if (this.#sending && this.#mark.task === undefined) setTimeout(abort, LINGER_MS).unref();
    else abort();
  }

  #break(error: unknown): void {
    this.#broken ??= { error };
    this.#calls.abort(error);
  }

  #start(session: Session): Promise<RelayOutcome> {
    const { task, turn } = this.#mark;
    if (task === undefined) return this.#begin(session);
    if (this.#turns > turn) return this.#answer(session, task);
    return this.#follow(session, task);
  }

  async #begin(session: Session): Promise<RelayOutcome> {
    const message = this.#first();
    if (this.#mark.sending) {
      const found = await this.#find(session, message);
      if (found) {
        const outcome = await this.#take({ kind: "task", task: found });
        return outcome ?? this.#follow(session, found.id);
      }
    }
    await this.#save({ turn: this.#turns, said: 0, sending: true });
    return this.#hand(session, message);
  }

  /** The answer goes into the task that asked, unless it was given already. */
  async #answer(session: Session, task: string): Promise<RelayOutcome> {
    const snapshot = await this.#look(session, task);
    const { id } = this.#port.lease.delegation;
    const { context } = this.#mark;
    const message = {
      ...toSend(this.#port.lease.request.params.message, id),
      taskId: task,
      ...(context !== undefined && { contextId: context }),
    };
    const isAsking = snapshot.status.state?.means === "interrupt";
    const isGiven = this.#mark.sending && snapshot.history.some((one) => isSame(one, message));
    if (!isAsking || isGiven) {
      await this.#save({ ...this.#mark, turn: this.#turns, sending: false });
      return this.#follow(session, task);
    }
    this.#stale = { status: statusKey(snapshot.status), until: performance.now() + STALE_MS };
    await this.#save({ ...this.#mark, sending: true });
    return this.#hand(session, message);
  }

  /** Sends, and takes what comes back until it ends. */
  async #hand(session: Session, message: Message): Promise<RelayOutcome> {
    let failure: RemoteError | undefined;
    this.#sending = true;
    try {
      const outcome = await this.#takeAll(session.send(message, this.#calls.signal));
      if (outcome) return outcome;
    } catch (error) {
      this.#calls.signal.throwIfAborted();
      if (!(error instanceof RemoteError)) throw error;
      failure = error;
    } finally {
      this.#sending = false;
    }
    const { task, sending } = this.#mark;
    // Something came back, so the message arrived.
    if (task !== undefined && !sending) return this.#follow(session, task);
    failure ??= new RemoteError("away", "the A2A server said nothing");
    if (failure.kind !== "away" && failure.kind !== "broken") throw failure;
    if (task !== undefined) {
      // The task tells whether it was answered; if not, the next run answers.
      return waiting(failure);
    }
    const found = await this.#find(session, message);
    if (!found) return failed(failure, true);
    const outcome = await this.#take({ kind: "task", task: found });
    return outcome ?? this.#follow(session, found.id);
  }

  /** To the task's end or its next question, across cuts. */
  async #follow(session: Session, task: string): Promise<RelayOutcome> {
    let streaming = session.streaming;
    const { signal } = this.#calls;
    for (let looks = 0; ; looks += 1) {
      const snapshot = await this.#look(session, task);
      const outcome = await this.#take({ kind: "task", task: snapshot });
      if (outcome) return outcome;
      if (streaming) {
        try {
          const told = await this.#takeAll(session.subscribe(task, signal));
          if (told) return told;
        } catch (error) {
          signal.throwIfAborted();
          if (!(error instanceof RemoteError)) throw error;
          // A cut; anything else is a server that does not let a stream be opened again.
          streaming = patience(error.kind) > 0;
        }
      }
      await pause(streaming ? 1 : looks, signal);
    }
  }

  async #takeAll(updates: AsyncIterable<Update>): Promise<RelayOutcome | undefined> {
    for await (const update of updates) {
      const outcome = await this.#take(update);
      if (outcome) return outcome;
    }
    return undefined;
  }

  /** One thing that the remote says; the outcome when that is the end, or a question. */
  async #take(update: Update): Promise<RelayOutcome | undefined> {
    if (update.kind === "message") return reply("completed", update.message, []);
    const id = update.kind === "task" ? update.task.id : update.id;
    const context = update.kind === "task" ? update.task.contextId : update.contextId;
    await this.#adopt(id, context);
    switch (update.kind) {
      case "artifact":
        this.#output.chunk(update.artifact, update.append, update.lastChunk);
        return undefined;
      case "task":
        this.#output.snapshot(update.task.artifacts);
        this.#followUps.begin(update.task.history);
        return this.#takeStatus(update.task.status, update.task);
      case "status":
        return this.#takeStatus(update.status);
    }
  }

  /** Kept before anything of the task is passed on. */
  async #adopt(id: string, context: string): Promise<void> {
    const { task, sending, turn } = this.#mark;
    if (task !== undefined && !sending && turn === this.#turns) return;
    const known = { task: task ?? id, ...(context !== "" && { context }) };
    await this.#save({ ...this.#mark, ...known, turn: this.#turns, sending: false });
    this.#port.signal.throwIfAborted();
  }

  async #takeStatus(status: RemoteStatus, task?: RemoteTask): Promise<RelayOutcome | undefined> {
    const { state, message } = status;
    if (state === undefined) {
      if (task) throw new RemoteError("broken", "the A2A server's task is in no state of A2A");
      return undefined;
    }
    if (state.means === "progress") {
      const said = message ? textOf(message) : "";
      if (said !== "") this.#port.progress(cut(said, PROGRESS_MAX));
      this.#followUps.begin(task?.history ?? []);
      return undefined;
    }
    if (state.means === "interrupt" && this.#isStale(status)) return undefined;
    this.#followUps.end();
    await this.#output.flush();
    switch (state.means) {
      case "interrupt":
        return question(state.state === "input_required" ? "input" : "auth", message, this.#turns + 1);
      case "canceled":
        return canceled(message);
      case "reply": {
        const last = message ?? (await this.#lastWords(task));
        return reply(state.state, last, this.#output.rest(), message);
      }
    }
  }

  #isStale(status: RemoteStatus): boolean {
    if (this.#stale === undefined || performance.now() > this.#stale.until) return false;
    return this.#stale.status === statusKey(status);
  }

  /** A task that ends without a word and without output may have said it before. */
  async #lastWords(task: RemoteTask | undefined): Promise<Message | undefined> {
    if (!task && !this.#output.isEmpty) return undefined;
    let known = task;
    if (!known && this.#mark.task !== undefined) {
      const session = await this.#remote.open(this.#calls.signal);
      known = await session.get(this.#mark.task, this.#calls.signal).catch(() => undefined);
      if (known) this.#output.snapshot(known.artifacts);
      await this.#output.flush();
    }
    return known?.history.findLast(({ role }) => role === "ROLE_AGENT");
  }

  async #look(session: Session, task: string): Promise<RemoteTask> {
    for (let failures = 0; ; failures += 1) {
      try {
        return await session.get(task, this.#calls.signal);
      } catch (error) {
        this.#calls.signal.throwIfAborted();
        if (!(error instanceof RemoteError) || failures >= patience(error.kind)) throw error;
        if (failures === 0) this.#port.note(`${error.message}; trying again`);
        await pause(failures, this.#calls.signal);
      }
    }
  }

  async #find(session: Session, message: Message): Promise<RemoteTask | undefined> {
    for (let failures = 0; ; failures += 1) {
      try {
        return await session.find(message, this.#calls.signal);
      } catch (error) {
        this.#calls.signal.throwIfAborted();
        if (!(error instanceof RemoteError)) throw error;
        if (["unsupported", "failed", "broken", "gone"].includes(error.kind)) return undefined;
        if (failures >= patience(error.kind)) throw error;
        await pause(failures, this.#calls.signal);
      }
    }
  }

  async #say(message: Message): Promise<void> {
    const { task, context } = this.#mark;
    if (task === undefined) return;
    const { id } = this.#port.lease.delegation;
    const session = await this.#remote.open(this.#calls.signal);
    const said = {
      ...toSend(message, id),
      taskId: task,
      ...(context !== undefined && { contextId: context }),
    };
    try {
      await session.say(said, this.#calls.signal);
    } catch (error) {
      this.#calls.signal.throwIfAborted();
      if (!(error instanceof RemoteError)) throw error;
      this.#port.note(`a follow-up was not taken: ${error.message}`);
    }
  }

  /** In memory first: what is canceled meanwhile is canceled there too. One at a time, the newest wins. */
  #save(mark: Mark): Promise<void> {
    this.#mark = mark;
    const saved = this.#saved.then(() => this.#port.saveCheckpoint({ ...this.#mark }));
    this.#saved = saved.catch(() => undefined);
    return saved;
  }

  /** Nobody waits for the task any more, if nobody goes on with it. */
  async #giveUp(): Promise<void> {
    const { task, sending } = this.#mark;
    if ((task === undefined && !sending) || !(await this.#port.isOver())) return;
    const { signal } = new AbortController();
    try {
      const session = await this.#remote.open(signal);
      const id = task ?? (await session.find(this.#first(), signal))?.id;
      if (id !== undefined) await this.#remote.cancel(id, this.#port.note);
    } catch (error) {
      this.#port.note(`the task was not canceled: ${toRemoteError(error).message}`);
    }
  }

  /** The message that makes the task. */
  #first(): Message {
    const { delegation } = this.#port.lease;
    return { contextId: delegation.context_id, ...toSend(delegation.message, delegation.id) };
  }

  async #fail(error: unknown): Promise<RelayOutcome> {
    if (error instanceof TooLargeError) {
      if (this.#mark.task !== undefined) await this.#remote.cancel(this.#mark.task, this.#port.note);
      return tooLarge();
    }
    if (!(error instanceof RemoteError)) {
      this.#port.note("the relay failed");
      return failed(new RemoteError("broken", "the relay failed"), true);
    }
    const { kind } = error;
    if (kind === "unsent" || kind === "away" || kind === "refused") {
      this.#remote.forget();
      return waiting(error);
    }
    if (kind !== "gone") return failed(error, error.retryable);
    await this.#save({ turn: this.#turns, said: 0 }).catch(() => undefined);
    return lost(error);
  }
}

/** A message as the remote gets it: the lease is none of its business. */
function toSend({ taskId: _ours, ...message }: Message, delegationId: string): Message {
  const { lease_id: _hidden, ...metadata } = message.metadata ?? {};
  return { ...message, metadata: { ...metadata, delegation_id: delegationId } };
}

function statusKey({ state, message, timestamp }: RemoteStatus): string {
  return JSON.stringify([state?.state, message?.messageId, timestamp]);
}
