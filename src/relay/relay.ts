/**
 * Hands one delegation to an A2A server and follows the task, until it ends, asks a question, or the lease is lost. Its
 * only state is its checkpoint: the next holder of the lease continues with the same task. Limit: a message of which no
 * answer came at all is sent again, unless the server can list its tasks.
 */
import type { Message } from "../schema/a2a.ts";
import { AnsweredQuestion, questionKey } from "./answered-question.ts";
import { pause, retryUnsent, retryWhileAway, triesFor } from "./backoff.ts";
import { CheckpointStore } from "./checkpoint.ts";
import { FollowUpSender } from "./follow-ups.ts";
import { FilesTooLargeError, withFiles } from "./message-files.ts";
import { followUpMessage, isSameMessage, taskMessage } from "./messages.ts";
import { failed, released, unreadable } from "./outcomes.ts";
import { Output } from "./output.ts";
import type { RelayOutcome, RelayPort } from "./port.ts";
import { Receiver } from "./receiver.ts";
import type { Remote, Session } from "./remote.ts";
import { isAnswered, isMissing, RemoteError } from "./remote-error.ts";
import { endFailed, endStopped } from "./run-end.ts";
import type { RemoteTask } from "./updates.ts";

/** How long a stopped run waits for the id of a task that is being created. */
const LINGER_MS = 5_000;
/** A stream that lasts at least this long is opened again at once. */
const STREAM_MS = 1_000;

/** Never throws: each failure is an outcome. */
export function relay(port: RelayPort, remote: Remote): Promise<RelayOutcome> {
  return new Run(port, remote).run();
}

class Run {
  readonly #port: RelayPort;
  readonly #remote: Remote;
  readonly #output: Output;
  readonly #followUps: FollowUpSender;
  /** Aborts calls to the remote. */
  readonly #calls = new AbortController();
  readonly #checkpoints: CheckpointStore;
  readonly #answered: AnsweredQuestion;
  readonly #receiver: Receiver;
  #failure: { readonly error: unknown } | undefined;
  #sending = false;

  constructor(port: RelayPort, remote: Remote) {
    this.#port = port;
    this.#remote = remote;
    this.#output = new Output(port, (error) => this.#fail(error));
    this.#checkpoints = new CheckpointStore(port);
    this.#answered = new AnsweredQuestion(this.#checkpoints.checkpoint.asked);
    this.#followUps = new FollowUpSender({
      sent: this.#checkpoints.checkpoint.said,
      send: (message) => this.#sendFollowUp(message),
      onSent: () => this.#checkpoints.change({ said: this.#checkpoints.checkpoint.said + 1 }),
      onError: (error) => this.#fail(error),
    });
    this.#receiver = new Receiver({
      port,
      remote,
      output: this.#output,
      followUps: this.#followUps,
      checkpoints: this.#checkpoints,
      answered: this.#answered,
      signal: this.#calls.signal,
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
      const error = this.#failure?.error ?? thrown;
      const end = { port: this.#port, remote: this.#remote, checkpoints: this.#checkpoints };
      return signal.aborted ? await endStopped(end) : await endFailed(end, error);
    } finally {
      signal.removeEventListener("abort", stop);
      this.#followUps.end();
      this.#output.stop();
      this.#calls.abort();
    }
  }

  /** Aborts all calls; while a task is being created, only after a pause, because the task may have to be canceled. */
  #stop(): void {
    const abort = () => this.#calls.abort(this.#port.signal.reason);
    const isCreating = this.#sending && this.#checkpoints.checkpoint.task === undefined;
    if (isCreating) setTimeout(abort, LINGER_MS).unref();
    else abort();
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#calls.abort(error);
  }

  #start(session: Session): Promise<RelayOutcome> {
    const { task, turn } = this.#checkpoints.checkpoint;
    if (task === undefined) return this.#begin(session);
    if (this.#checkpoints.answerCount > turn) return this.#answer(session, task);
    return this.#follow(session, task);
  }

  async #begin(session: Session): Promise<RelayOutcome> {
    const message = await this.#withFiles(taskMessage(this.#port.lease.delegation));
    const { sending, arrived } = this.#checkpoints.checkpoint;
    if (sending) {
      const existing = await this.#find(session, message);
      if (existing) return this.#resume(session, existing);
      if (arrived)
        return this.#unreadable(new RemoteError("broken", "the A2A server's answer was not readable"));
      await this.#hear(session);
    }
    await this.#checkpoints.save({ turn: this.#checkpoints.answerCount, said: 0, sending: true });
    return this.#send(session, message);
  }

  /** Sends the answer to the task that asked, unless the task already has it. */
  async #answer(session: Session, task: string): Promise<RelayOutcome> {
    const { status, history } = await this.#readTask(session, task);
    const { checkpoint } = this.#checkpoints;
    const message = await this.#withFiles(this.#messageTo(task, this.#port.lease.request.params.message));
    const hasAnswer = checkpoint.sending && history.some((one) => isSameMessage(one, message));
    if (status.state?.means !== "interrupt" || hasAnswer) return this.#continue(session, task);
    const asked = questionKey(status);
    this.#answered.answered(asked);
    await this.#checkpoints.change({ sending: true, asked });
    return this.#send(session, message);
  }

  /** Follows a task that has its answer. */
  async #continue(session: Session, task: string): Promise<RelayOutcome> {
    await this.#checkpoints.change({ turn: this.#checkpoints.answerCount, sending: false });
    return this.#follow(session, task);
  }

  /** Sends a message and receives the server's updates until its answer ends. */
  async #send(session: Session, message: Message): Promise<RelayOutcome> {
    let failure: RemoteError | undefined;
    this.#sending = true;
    try {
      const outcome = await this.#receiver.receiveAll(session.send(message, this.#calls.signal));
      if (outcome) return outcome;
    } catch (error) {
      this.#calls.signal.throwIfAborted();
      if (!(error instanceof RemoteError)) throw error;
      failure = error;
    } finally {
      this.#sending = false;
    }
    const { task, sending } = this.#checkpoints.checkpoint;
    // An update came back, so the message arrived.
    if (task !== undefined && !sending) return this.#follow(session, task);
    failure ??= new RemoteError("broken", "the A2A server sent no update");
    if (task !== undefined && (failure.kind === "failed" || failure.kind === "unsupported")) {
      // The server may have refused the answer because the task no longer asks.
      const { status } = await this.#readTask(session, task);
      if (status.state?.means !== "interrupt") return this.#continue(session, task);
    }
    if (failure.kind !== "away" && failure.kind !== "broken") throw failure;
    if (failure.kind === "broken") return this.#arrived(session, message, failure);
    // The next run reads the task, and sends the answer if it still asks.
    if (task !== undefined) return released(failure);
    const existing = await this.#find(session, message);
    if (existing) return this.#resume(session, existing);
    await this.#hear(session);
    return failed(failure, true);
  }

  /** The server has the message, but its answer cannot be read: so the message is not sent again. */
  async #arrived(session: Session, message: Message, failure: RemoteError): Promise<RelayOutcome> {
    const { task } = this.#checkpoints.checkpoint;
    if (task !== undefined) return this.#continue(session, task);
    await this.#checkpoints.change({ arrived: true });
    const existing = await this.#find(session, message);
    return existing ? this.#resume(session, existing) : this.#unreadable(failure);
  }

  async #unreadable(failure: RemoteError): Promise<RelayOutcome> {
    await this.#checkpoints.save({ turn: this.#checkpoints.answerCount, said: 0 });
    return unreadable(failure);
  }

  async #resume(session: Session, task: RemoteTask): Promise<RelayOutcome> {
    const outcome = await this.#receiver.receive({ kind: "task", task });
    return outcome ?? this.#follow(session, task.id);
  }

  /** Follows the task to its end or its next question, across broken streams. */
  async #follow(session: Session, task: string): Promise<RelayOutcome> {
    let streaming = session.streaming;
    const { signal } = this.#calls;
    for (let rounds = 0; ; rounds += 1) {
      const outcome = await this.#receiver.receive({
        kind: "task",
        task: await this.#readTask(session, task),
      });
      if (outcome) return outcome;
      if (streaming) {
        this.#receiver.missedUpdates = true;
        const openedAt = performance.now();
        try {
          const end = await this.#receiver.receiveAll(session.subscribe(task, signal));
          if (end) return end;
        } catch (error) {
          signal.throwIfAborted();
          if (!(error instanceof RemoteError)) throw error;
          // Any failure other than an outage means that the server cannot reopen a stream.
          streaming = triesFor(error.kind) > 0 && !isMissing(error);
        }
        // A stream that ends at once counts as a failed try.
        if (performance.now() - openedAt > STREAM_MS) rounds = 0;
      }
      await pause(rounds, signal);
    }
  }

  #readTask(session: Session, task: string): Promise<RemoteTask> {
    const { signal } = this.#calls;
    const note = ({ message }: RemoteError) => this.#port.note(`${message}; trying again`);
    return retryWhileAway(signal, () => session.get(task, signal), note);
  }

  async #find(session: Session, message: Message): Promise<RemoteTask | undefined> {
    const { signal } = this.#calls;
    try {
      return await retryWhileAway(signal, () => session.find(message, signal));
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof RemoteError)) throw error;
      if (isAnswered(error) || isMissing(error)) return undefined;
      throw error;
    }
  }

  /** Waits until the server itself answers, before a message is sent again: what took the last one may still be there. */
  async #hear(session: Session): Promise<void> {
    const { signal } = this.#calls;
    try {
      // It knows no such task.
      await retryWhileAway(signal, () => session.get(this.#port.lease.delegation.id, signal));
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof RemoteError) || !isAnswered(error)) throw error;
    }
  }

  async #withFiles(message: Message): Promise<Message> {
    const { loadFile, signal } = this.#port;
    if (!loadFile) return message;
    return withFiles(message, loadFile).catch((error: unknown) => {
      signal.throwIfAborted();
      throw error;
    });
  }

  #messageTo(task: string, message: Message): Message {
    return followUpMessage(
      task,
      this.#checkpoints.checkpoint.context,
      message,
      this.#port.lease.delegation.id,
    );
  }

  async #sendFollowUp(message: Message): Promise<void> {
    const { task } = this.#checkpoints.checkpoint;
    if (task === undefined) return;
    const session = await this.#remote.open(this.#calls.signal);
    try {
      const followUp = await this.#withFiles(this.#messageTo(task, message));
      await retryUnsent(this.#calls.signal, () => session.sendFollowUp(followUp, this.#calls.signal));
    } catch (error) {
      this.#calls.signal.throwIfAborted();
      const isRefused = error instanceof FilesTooLargeError || error instanceof RemoteError;
      // What was not sent is sent by the next run.
      if (!isRefused || (error instanceof RemoteError && error.kind === "unsent")) throw error;
      this.#port.note(`a follow-up was refused: ${error.message}`);
    }
  }
}
