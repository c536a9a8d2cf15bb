/**
 * One delegation handed to an A2A server, from its lease to its end or until the lease goes. It keeps nothing but its
 * checkpoint: whoever leases the delegation next goes on with the same remote task. Limit: a message whose answer was
 * never heard is sent again unless the server lists its tasks.
 */
import { type Message, textOf } from "../schema/a2a.ts";
import type { State } from "../schema/delegation.ts";
import { truncate } from "../schema/text.ts";
import { Asked, keyOf } from "./asked.ts";
import { patience, patiently, pause } from "./backoff.ts";
import { turnsIn } from "./checkpoint.ts";
import { CheckpointStore } from "./checkpoint-store.ts";
import { FollowUps } from "./follow-ups.ts";
import { first, into, isSame } from "./messages.ts";
import { canceled, failed, lost, question, reply, tooLarge, waiting } from "./outcomes.ts";
import { Output, TooLargeError } from "./output.ts";
import type { RelayOutcome, RelayPort } from "./port.ts";
import type { Remote, Session } from "./remote.ts";
import { RemoteError, toRemoteError } from "./remote-error.ts";
import type { RemoteStatus, RemoteTask, Update } from "./updates.ts";

/** A canceled delegation whose task is not known yet waits so long to learn of it. */
const LINGER_MS = 5_000;
/** A stream that was open for so long was worth opening. */
const STREAM_MS = 1_000;
const WHOLE_LOOKS = 4;
const PROGRESS_MAX = 4096;

/** Never throws: whatever goes wrong is an outcome. */
export function relay(port: RelayPort, remote: Remote): Promise<RelayOutcome> {
  return new Run(port, remote).run();
}

class Run {
  readonly #port: RelayPort;
  readonly #remote: Remote;
  readonly #output: Output;
  readonly #followUps: FollowUps;
  /** Aborts what is under way with the remote. */
  readonly #calls = new AbortController();
  readonly #turns: number;
  readonly #notes: CheckpointStore;
  readonly #asked: Asked;
  /** The stream was opened again: something may have passed between, even where it begins with the task. */
  #reopened = false;
  #broken: { readonly error: unknown } | undefined;
  #sending = false;

  constructor(port: RelayPort, remote: Remote) {
    this.#port = port;
    this.#remote = remote;
    this.#output = new Output(port, (error) => this.#break(error));
    this.#turns = turnsIn(port.lease.delegation.history);
    this.#notes = new CheckpointStore(port, this.#turns);
    this.#asked = new Asked(this.#notes.mark.asked);
    this.#followUps = new FollowUps({
      said: this.#notes.mark.said,
      say: (message) => this.#say(message),
      count: () => this.#notes.change({ said: this.#notes.mark.said + 1 }),
      onError: (error) => this.#break(error),
    });
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
    if (this.#sending && this.#notes.mark.task === undefined) setTimeout(abort, LINGER_MS).unref();
    else abort();
  }

  #break(error: unknown): void {
    this.#broken ??= { error };
    this.#calls.abort(error);
  }

  #start(session: Session): Promise<RelayOutcome> {
    const { task, turn } = this.#notes.mark;
    if (task === undefined) return this.#begin(session);
    if (this.#turns > turn) return this.#answer(session, task);
    return this.#follow(session, task);
  }

  async #begin(session: Session): Promise<RelayOutcome> {
    const message = first(this.#port.lease.delegation);
    if (this.#notes.mark.sending) {
      const found = await this.#find(session, message);
      if (found) return this.#takeUp(session, found);
    }
    await this.#notes.save({ turn: this.#turns, said: 0, sending: true });
    return this.#hand(session, message);
  }

  /** The answer goes into the task that asked, unless it was given already. */
  async #answer(session: Session, task: string): Promise<RelayOutcome> {
    const { status, history } = await this.#look(session, task);
    const { mark } = this.#notes;
    const message = this.#into(task, this.#port.lease.request.params.message);
    const isGiven = mark.sending && history.some((one) => isSame(one, message));
    if (status.state?.means !== "interrupt" || isGiven) return this.#goOn(session, task);
    const asked = keyOf(status);
    this.#asked.answered(asked);
    await this.#notes.change({ sending: true, asked });
    return this.#hand(session, message);
  }

  /** The task has what it asked for. */
  async #goOn(session: Session, task: string): Promise<RelayOutcome> {
    await this.#notes.change({ turn: this.#turns, sending: false });
    return this.#follow(session, task);
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
    const { task, sending } = this.#notes.mark;
    // Something came back, so the message arrived.
    if (task !== undefined && !sending) return this.#follow(session, task);
    failure ??= new RemoteError("away", "the A2A server said nothing");
    if (task !== undefined && (failure.kind === "failed" || failure.kind === "unsupported")) {
      // What it asked may be over meanwhile.
      const { status } = await this.#look(session, task);
      if (status.state?.means !== "interrupt") return this.#goOn(session, task);
    }
    if (failure.kind !== "away" && failure.kind !== "broken") throw failure;
    // The task tells whether it was answered; if not, the next run answers.
    if (task !== undefined) return waiting(failure);
    const found = await this.#find(session, message);
    return found ? this.#takeUp(session, found) : failed(failure, true);
  }

  async #takeUp(session: Session, task: RemoteTask): Promise<RelayOutcome> {
    const outcome = await this.#take({ kind: "task", task });
    return outcome ?? this.#follow(session, task.id);
  }

  /** To the task's end or its next question, across cuts. */
  async #follow(session: Session, task: string): Promise<RelayOutcome> {
    let streaming = session.streaming;
    const { signal } = this.#calls;
    for (let looks = 0; ; looks += 1) {
      const outcome = await this.#take({ kind: "task", task: await this.#look(session, task) });
      if (outcome) return outcome;
      if (streaming) {
        this.#reopened = true;
        const askedAt = performance.now();
        try {
          const told = await this.#takeAll(session.subscribe(task, signal));
          if (told) return told;
        } catch (error) {
          signal.throwIfAborted();
          if (!(error instanceof RemoteError)) throw error;
          // A cut; anything else is a server that does not let a stream be opened again.
          streaming = patience(error.kind) > 0;
        }
        // A stream that ends at once is as good as none.
        if (performance.now() - askedAt > STREAM_MS) looks = 0;
      }
      await pause(looks, signal);
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
    const { task, sending, turn } = this.#notes.mark;
    if (task !== undefined && !sending && turn === this.#turns) return;
    const known = { task: task ?? id, ...(context !== "" && { context }) };
    await this.#notes.change({ ...known, turn: this.#turns, sending: false });
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
      if (said !== "") this.#port.progress(truncate(said, PROGRESS_MAX));
      this.#followUps.begin(task?.history ?? []);
      return undefined;
    }
    if (state.means === "interrupt" && this.#asked.isStale(status, this.#isHeard(task))) return undefined;
    this.#followUps.end();
    const wordless = state.means === "reply" && !message && this.#output.isEmpty;
    const whole = task ?? (this.#reopened || wordless ? await this.#whole(state.state) : undefined);
    await this.#output.flush();
    switch (state.means) {
      case "interrupt":
        return question(state.state === "input_required" ? "input" : "auth", message, this.#turns + 1);
      case "canceled":
        return canceled(message);
      case "reply": {
        // A task that ends without a word may have said it before.
        const last = message ?? whole?.history.findLast(({ role }) => role === "ROLE_AGENT");
        return reply(state.state, last, this.#output.rest(), message);
      }
    }
  }

  #isHeard(task: RemoteTask | undefined): boolean {
    const { messageId } = this.#port.lease.request.params.message;
    return task?.history.some((one) => one.messageId === messageId) ?? false;
  }

  /** The task as it stands in the state that a stream has told of; nothing when it cannot be had. */
  async #whole(state: State): Promise<RemoteTask | undefined> {
    const { task } = this.#notes.mark;
    if (task === undefined) return undefined;
    const { signal } = this.#calls;
    const session = await this.#remote.open(signal);
    // It may be kept a moment later than it is told.
    for (let looks = 0; looks < WHOLE_LOOKS; looks += 1) {
      const known = await session.get(task, signal).catch(() => undefined);
      if (known?.status.state?.state === state) {
        this.#output.snapshot(known.artifacts);
        return known;
      }
      await pause(looks, signal);
    }
    return undefined;
  }

  #look(session: Session, task: string): Promise<RemoteTask> {
    const { signal } = this.#calls;
    const note = ({ message }: RemoteError) => this.#port.note(`${message}; trying again`);
    return patiently(signal, () => session.get(task, signal), note);
  }

  async #find(session: Session, message: Message): Promise<RemoteTask | undefined> {
    const { signal } = this.#calls;
    try {
      return await patiently(signal, () => session.find(message, signal));
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof RemoteError)) throw error;
      if (["unsupported", "failed", "broken", "gone"].includes(error.kind)) return undefined;
      throw error;
    }
  }

  #into(task: string, message: Message): Message {
    return into(task, this.#notes.mark.context, message, this.#port.lease.delegation.id);
  }

  async #say(message: Message): Promise<void> {
    const { task } = this.#notes.mark;
    if (task === undefined) return;
    const session = await this.#remote.open(this.#calls.signal);
    const said = this.#into(task, message);
    try {
      await session.say(said, this.#calls.signal);
    } catch (error) {
      this.#calls.signal.throwIfAborted();
      if (!(error instanceof RemoteError)) throw error;
      this.#port.note(`a follow-up was not taken: ${error.message}`);
    }
  }

  /** Nobody waits for the task any more, if nobody goes on with it. */
  async #giveUp(): Promise<void> {
    const { task, sending } = this.#notes.mark;
    if ((task === undefined && !sending) || !(await this.#port.isOver())) return;
    const { signal } = new AbortController();
    try {
      const session = await this.#remote.open(signal);
      const id = task ?? (await session.find(first(this.#port.lease.delegation), signal))?.id;
      if (id !== undefined) await this.#remote.cancel(id, this.#port.note);
    } catch (error) {
      this.#port.note(`the task was not canceled: ${toRemoteError(error).message}`);
    }
  }

  async #fail(error: unknown): Promise<RelayOutcome> {
    if (error instanceof TooLargeError) {
      await this.#drop();
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
    if (kind === "gone") {
      await this.#notes.save({ turn: this.#turns, said: 0 }).catch(() => undefined);
      return lost(error);
    }
    const { attempt, max_attempts } = this.#port.lease.delegation;
    if (!error.retryable || attempt >= max_attempts) await this.#drop();
    return failed(error, error.retryable);
  }

  /** Nobody goes on with the task. */
  async #drop(): Promise<void> {
    const { task } = this.#notes.mark;
    if (task !== undefined) await this.#remote.cancel(task, this.#port.note);
  }
}
