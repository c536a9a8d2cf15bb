/** Applies the updates of a remote task to the delegation, until the task ends or asks a question. */
import { textOf } from "../schema/a2a.ts";
import type { State } from "../schema/delegation.ts";
import { truncate } from "../schema/text.ts";
import type { AnsweredQuestion } from "./answered-question.ts";
import { pause } from "./backoff.ts";
import type { CheckpointStore } from "./checkpoint.ts";
import type { FollowUpSender } from "./follow-ups.ts";
import { asked, canceled, messaged, replied } from "./outcomes.ts";
import type { Output } from "./output.ts";
import type { RelayOutcome, RelayPort } from "./port.ts";
import type { Remote } from "./remote.ts";
import { RemoteError } from "./remote-error.ts";
import type { RemoteStatus, RemoteTask, Update } from "./updates.ts";

const WHOLE_TASK_TRIES = 4;
const PROGRESS_MAX = 4096;

export interface ReceiverOptions {
  readonly port: RelayPort;
  readonly remote: Remote;
  readonly output: Output;
  readonly followUps: FollowUpSender;
  readonly checkpoints: CheckpointStore;
  readonly answered: AnsweredQuestion;
  /** Aborts calls to the remote. */
  readonly signal: AbortSignal;
}

export class Receiver {
  readonly #port: RelayPort;
  readonly #remote: Remote;
  readonly #output: Output;
  readonly #followUps: FollowUpSender;
  readonly #checkpoints: CheckpointStore;
  readonly #answered: AnsweredQuestion;
  readonly #signal: AbortSignal;
  /** True once a stream was reopened: updates may be missing, even if the new stream begins with the task. */
  missedUpdates = false;

  constructor(options: ReceiverOptions) {
    this.#port = options.port;
    this.#remote = options.remote;
    this.#output = options.output;
    this.#followUps = options.followUps;
    this.#checkpoints = options.checkpoints;
    this.#answered = options.answered;
    this.#signal = options.signal;
  }

  async receiveAll(updates: AsyncIterable<Update>): Promise<RelayOutcome | undefined> {
    for await (const update of updates) {
      const outcome = await this.receive(update);
      if (outcome) return outcome;
    }
    return undefined;
  }

  /** Applies one update. Returns the outcome if it ends the task or asks a question. */
  async receive(update: Update): Promise<RelayOutcome | undefined> {
    if (update.kind === "message") {
      const isBare = this.#checkpoints.checkpoint.task === undefined;
      return isBare ? messaged(update.message) : replied("completed", update.message, []);
    }
    const id = update.kind === "task" ? update.task.id : update.id;
    const context = update.kind === "task" ? update.task.contextId : update.contextId;
    await this.#saveTask(id, context);
    switch (update.kind) {
      case "artifact":
        this.#output.chunk(update.artifact, update.append, update.lastChunk);
        return undefined;
      case "task":
        this.#output.snapshot(update.task.artifacts);
        this.#followUps.begin(update.task.history);
        return this.#receiveStatus(update.task.status, update.task);
      case "status":
        return this.#receiveStatus(update.status);
    }
  }

  /** Saves the task's id, before any of its updates is applied. */
  async #saveTask(id: string, context: string): Promise<void> {
    const { task, sending, turn } = this.#checkpoints.checkpoint;
    if (task !== undefined && !sending && turn === this.#checkpoints.answerCount) return;
    const known = { task: task ?? id, ...(context !== "" && { context }) };
    await this.#checkpoints.change({ ...known, turn: this.#checkpoints.answerCount, sending: false });
    this.#port.signal.throwIfAborted();
  }

  async #receiveStatus(status: RemoteStatus, task?: RemoteTask): Promise<RelayOutcome | undefined> {
    const { state, message } = status;
    if (state === undefined) {
      if (task) throw new RemoteError("broken", "the A2A server's task has an unknown state");
      return undefined;
    }
    if (state.means === "progress") {
      const text = message ? textOf(message) : "";
      if (text !== "") this.#port.progress(truncate(text, PROGRESS_MAX));
      this.#followUps.begin(task?.history ?? []);
      return undefined;
    }
    if (state.means === "interrupt" && this.#answered.isStale(status, this.#hasAnswer(task)))
      return undefined;
    this.#followUps.end();
    const isEmpty = state.means === "reply" && !message && this.#output.isEmpty;
    const whole = task ?? (this.missedUpdates || isEmpty ? await this.#wholeTask(state.state) : undefined);
    await this.#output.flush();
    switch (state.means) {
      case "interrupt":
        return asked(
          state.state === "input_required" ? "input" : "auth",
          message,
          this.#checkpoints.answerCount + 1,
        );
      case "canceled":
        return canceled(message);
      case "reply": {
        // A task that ends without a message may have sent its answer before.
        const last = message ?? whole?.history.findLast(({ role }) => role === "ROLE_AGENT");
        return replied(state.state, last, this.#output.rest(), message);
      }
    }
  }

  #hasAnswer(task: RemoteTask | undefined): boolean {
    const { messageId } = this.#port.lease.request.params.message;
    return task?.history.some((one) => one.messageId === messageId) ?? false;
  }

  /** Reads the whole task in the state that the stream reported; undefined if the server does not return that. */
  async #wholeTask(state: State): Promise<RemoteTask | undefined> {
    const { task } = this.#checkpoints.checkpoint;
    if (task === undefined) return undefined;
    const signal = this.#signal;
    const session = await this.#remote.open(signal);
    // A server may store the state a moment after it streams it.
    for (let tries = 0; tries < WHOLE_TASK_TRIES; tries += 1) {
      const found = await session.get(task, signal).catch(() => undefined);
      if (found?.status.state?.state === state) {
        this.#output.snapshot(found.artifacts);
        return found;
      }
      await pause(tries, signal);
    }
    return undefined;
  }
}
