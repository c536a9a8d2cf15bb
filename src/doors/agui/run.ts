/**
 * The events of one run: snapshots of the delegation, then what is new, up to its end or its next question. Everything
 * comes from the record and its events, so any gateway can continue. Limit: an event that does not only add to what was
 * shown causes new snapshots.
 */
import { toDelegation } from "../../engine/delegations/parse.ts";
import { readIfKept } from "../../engine/delegations/read.ts";
import { delegationEvents } from "../../engine/events/subscribe.ts";
import type { Entry } from "../../events/entry.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import type { Artifact } from "../../schema/a2a.ts";
import type { AgUiEvent } from "../../schema/ag-ui-event.ts";
import { runAgentInputSchema } from "../../schema/ag-ui-input.ts";
import { type Delegation, isTerminal, type Progress, stateSchema } from "../../schema/delegation.ts";
import { TERMINAL_EVENT_TYPES } from "../../schema/event.ts";
import type { StopSignal } from "../../util/stop-signal.ts";
import { Wakes } from "../../util/with-wakes.ts";
import type { Begun } from "./begin.ts";
import { endOf, type RunIds } from "./end.ts";
import { artifactsOf, dropsArtifacts, type EntryFields, fieldsOf } from "./entry-fields.ts";
import type { Run } from "./find.ts";
import { activityId } from "./ids.ts";
import {
  artifactMessage,
  metadataOf,
  placesOf,
  replyMessage,
  TextMessages,
  threadMessages,
} from "./messages.ts";
import { ShownArtifacts } from "./shown-artifacts.ts";
import { activityOf, artifactPatch, artifactState, patchOf, stateOf } from "./state.ts";
import { Subagents } from "./subagents.ts";

const PROTOCOL_VERSION = "1.0";
const ACTIVITY = "errand.progress";

/** Events that change the history or the question. */
const CHANGES_HISTORY = ["interrupted", "voted", "answered", "message"];

/**
 * The rate of snapshots after the first: each repeats the input, which may have a megabyte, and reads the whole
 * delegation, perhaps with its events.
 */
const SNAPSHOT_BYTES_PER_SECOND = 256 * 1024;
const SNAPSHOT_PAUSE_MS = 250;

const keptSchema = runAgentInputSchema.pick({ messages: true, state: true });

export class RunStream {
  readonly #request: Run["request"];
  readonly #agent: string;
  readonly #ids: RunIds;
  /** The messages and the state of the input, as text: while the run is silent, text takes much less memory. */
  readonly #input: string;
  readonly #begun: Begun;
  readonly #wakes = new Wakes();
  readonly #subagents: Subagents;
  readonly #artifacts = new ShownArtifacts();
  readonly #texts = new TextMessages();
  #step: string | undefined;
  #activity: Record<string, unknown> = {};
  #progress: Progress | null = null;
  #state = "";
  #attempt = 1;
  /** The events up to this one are shown. */
  #version = 0;
  /** When the next snapshot may be sent, by `performance.now()`. */
  #nextSnapshotAt = 0;
  /** A snapshot that has to wait. It will show everything, so events are skipped until then. */
  #pendingSnapshot: { readonly timer: NodeJS.Timeout; isDue: boolean } | undefined;

  constructor({ request, agent, input }: Run, begun: Begun) {
    this.#request = request;
    this.#agent = agent;
    this.#ids = { threadId: input.threadId, runId: input.runId };
    this.#input = JSON.stringify({ messages: input.messages, state: input.state });
    this.#begun = begun;
    const { broker, principal } = request;
    this.#subagents = new Subagents(broker, principal, begun.record.id, () => this.#wakes.wake());
  }

  async *events(signal: StopSignal): AsyncGenerator<AgUiEvent, void, undefined> {
    const { record, ignored } = this.#begun;
    const metadata = metadataOf(record.id);
    yield { type: "RUN_STARTED", ...this.#ids, protocolVersion: PROTOCOL_VERSION, metadata };
    const stop = new AbortController();
    const end = { handleEvent: () => stop.abort() };
    signal.addEventListener("abort", end);
    if (signal.aborted) stop.abort();
    try {
      yield* this.#snapshot(record, stop.signal);
      if (ignored) yield { type: "CUSTOM", name: "errand.resume_ignored", value: ignored };
      if (yield* this.#endIfOver(record)) return;
      yield* this.#subagentChanges(true);
      yield* this.#events(record, stop.signal);
    } finally {
      stop.abort();
      signal.removeEventListener("abort", end);
      clearTimeout(this.#pendingSnapshot?.timer);
      this.#subagents.stop();
    }
  }

  async *#events(record: StoredDelegation, signal: AbortSignal): AsyncGenerator<AgUiEvent, void, undefined> {
    const { broker, principal } = this.#request;
    const entries = delegationEvents(broker, record, record.get("event_id"), signal);
    for await (const event of this.#wakes.over(entries)) {
      if (event === null) {
        if (this.#pendingSnapshot?.isDue && (yield* this.#snapshotNow(signal))) return;
        yield* this.#subagentChanges(true);
        continue;
      }
      if (!("entry" in event) || event.entry.seq <= this.#version) continue;
      const { entry } = event;
      const fields = fieldsOf(entry);
      if (TERMINAL_EVENT_TYPES.includes(entry.type)) {
        const ended = await readIfKept(broker, principal, record.id);
        if (ended === null) {
          yield* this.#endAs(entry, fields);
          return;
        }
        const delegation = toDelegation(ended);
        const isAddition = !this.#pendingSnapshot && this.#artifacts.areAmong(delegation.artifacts);
        if (isAddition) yield* this.#addEnd(delegation, entry);
        else yield* this.#snapshot(ended, signal);
        yield* this.#endIfOver(ended);
        return;
      }
      if (this.#needsSnapshot(entry, fields)) {
        if (yield* this.#snapshotNow(signal)) return;
      } else if (!this.#pendingSnapshot) yield* this.#add(entry, fields);
      yield* this.#subagentChanges(false);
    }
  }

  /** Whether a snapshot is due now. One that has to wait comes later, by the timer. */
  #needsSnapshot(entry: Entry, fields: EntryFields): boolean {
    // An open question ends the run, so it does not wait.
    if (entry.status === "interrupted" && fields.auto !== true) return true;
    if (this.#pendingSnapshot || this.#isAddition(entry, fields)) return false;
    const waitMs = this.#nextSnapshotAt - performance.now();
    if (waitMs <= 0) return true;
    const timer = setTimeout(() => {
      pending.isDue = true;
      this.#wakes.wake();
    }, waitMs).unref();
    const pending = { timer, isDue: false };
    this.#pendingSnapshot = pending;
    return false;
  }

  /** Whether the event only adds to what was shown. */
  #isAddition(entry: Entry, fields: EntryFields): boolean {
    if (CHANGES_HISTORY.includes(entry.status)) return false;
    if (dropsArtifacts(entry, fields)) return this.#artifacts.size === 0;
    const { append = false } = fields;
    return artifactsOf(entry, fields).every((one) => this.#artifacts.continues(one, append));
  }

  /** Shows the delegation as it is now; true if that ends the run. */
  async *#snapshotNow(signal: StopSignal): AsyncGenerator<AgUiEvent, boolean, undefined> {
    const { broker, principal } = this.#request;
    const now = await readIfKept(broker, principal, this.#begun.record.id);
    // If it is deleted, its last event follows, and ends the run.
    if (now === null) return false;
    yield* this.#snapshot(now, signal);
    return yield* this.#endIfOver(now);
  }

  /** The snapshots, and the state of this stream that belongs to them. */
  async *#snapshot(record: StoredDelegation, signal: StopSignal): AsyncGenerator<AgUiEvent, void, undefined> {
    const { broker } = this.#request;
    const { keepsTaskId } = this.#begun;
    const input = keptSchema.parse(JSON.parse(this.#input));
    const delegation = toDelegation(record);
    const [places, presence] = await Promise.all([
      placesOf(broker, record, delegation, signal),
      broker.presence.cached(this.#agent),
    ]);
    yield* this.#texts.closeAll();
    yield { type: "MESSAGES_SNAPSHOT", messages: threadMessages(input, delegation, { places, keepsTaskId }) };
    yield { type: "STATE_SNAPSHOT", snapshot: stateOf(input, delegation, presence) };
    this.#artifacts.reset(delegation.artifacts);
    this.#version = record.get("version");
    clearTimeout(this.#pendingSnapshot?.timer);
    this.#pendingSnapshot = undefined;
    const bytes = this.#input.length + record.get("bytes");
    const pauseMs = Math.max(SNAPSHOT_PAUSE_MS, (1_000 * bytes) / SNAPSHOT_BYTES_PER_SECOND);
    this.#nextSnapshotAt = performance.now() + pauseMs;
    this.#note(delegation);
    this.#activity = activityOf(delegation);
    const messageId = activityId(delegation.id);
    yield { type: "ACTIVITY_SNAPSHOT", messageId, activityType: ACTIVITY, content: this.#activity };
    yield* this.#changeStep();
  }

  #note({ state, attempt, progress }: Pick<Delegation, "state" | "attempt" | "progress">): void {
    this.#state = state;
    this.#attempt = attempt;
    this.#progress = progress;
  }

  *#add(entry: Entry, fields: EntryFields): Generator<AgUiEvent> {
    this.#version = entry.seq;
    const { progress, attempt, append = false, last_chunk } = fields;
    for (const artifact of artifactsOf(entry, fields))
      yield* this.#addArtifact(artifact, { append, isWhole: last_chunk ?? !append });
    const before = { state: this.#state, attempt: this.#attempt };
    this.#note({
      state: stateSchema.parse(entry.state),
      attempt: attempt ?? this.#attempt,
      progress: progress ?? this.#progress,
    });
    yield* this.#changes(before);
  }

  *#changes(before: Record<string, unknown>): Generator<AgUiEvent> {
    const delta = patchOf(before, { state: this.#state, attempt: this.#attempt }).map((operation) => ({
      ...operation,
      path: `/errand${operation.path}`,
    }));
    if (delta.length > 0) yield { type: "STATE_DELTA", delta };
    const activity = activityOf({ state: this.#state, attempt: this.#attempt, progress: this.#progress });
    const patch = patchOf(this.#activity, activity);
    this.#activity = activity;
    const messageId = activityId(this.#begun.record.id);
    if (patch.length > 0) yield { type: "ACTIVITY_DELTA", messageId, activityType: ACTIVITY, patch };
    yield* this.#changeStep();
  }

  *#addArtifact(
    artifact: Artifact,
    { append, isWhole }: { readonly append: boolean; readonly isWhole: boolean },
  ): Generator<AgUiEvent> {
    const { id } = this.#begun.record;
    const { index, text, before } = this.#artifacts.add(artifact, append);
    const message = artifactMessage(id, artifact, text ?? "");
    const delta = before
      ? artifactPatch(id, artifact, { path: `/errand/artifacts/${index}`, append, hadText: !!before.text })
      : [{ op: "add" as const, path: "/errand/artifacts/-", value: artifactState(id, artifact) }];
    if (delta.length > 0) yield { type: "STATE_DELTA", delta };
    const isUnchanged = text === "" && before?.text !== undefined;
    if (text !== undefined && !isUnchanged) yield* this.#texts.add(message, isWhole);
    else if (isWhole) yield* this.#texts.close(message.id);
  }

  /** Opens and closes steps as the progress changes: at most one is open, the current one. */
  *#changeStep(): Generator<AgUiEvent> {
    const step = this.#state === "working" ? this.#progress?.current_step : undefined;
    if (step === this.#step) return;
    if (this.#step !== undefined) yield { type: "STEP_FINISHED", stepName: this.#step };
    this.#step = step;
    if (step !== undefined) yield { type: "STEP_STARTED", stepName: step };
  }

  /** The end as an addition to what was shown. */
  *#addEnd(ended: Delegation, entry: Entry): Generator<AgUiEvent> {
    this.#version = entry.seq;
    for (const artifact of ended.artifacts) {
      if (!this.#artifacts.has(artifact.artifactId))
        yield* this.#addArtifact(artifact, { append: false, isWhole: true });
    }
    yield* this.#texts.closeAll();
    const reply = replyMessage(ended);
    if (reply) yield* this.#texts.add(reply, true);
    const before = { state: this.#state, attempt: this.#attempt };
    this.#note(ended);
    yield* this.#changes(before);
    const { error } = ended;
    if (error) yield { type: "STATE_DELTA", delta: [{ op: "add", path: "/errand/error", value: error }] };
  }

  async *#subagentChanges(now: boolean): AsyncGenerator<AgUiEvent, void, undefined> {
    yield* await this.#subagents.look(now);
  }

  /** Ends the run if the delegation is finished or asks a question. */
  async *#endIfOver(record: StoredDelegation): AsyncGenerator<AgUiEvent, boolean, undefined> {
    const delegation = toDelegation(record);
    if (!isTerminal(delegation.state) && delegation.interrupt === null) return false;
    yield* this.#subagentChanges(true);
    yield* this.#close();
    yield endOf(this.#ids, delegation);
    return true;
  }

  /** Ends the run by its last event, because the record was deleted since. Only the reply is not shown. */
  *#endAs(entry: Entry, { error }: EntryFields): Generator<AgUiEvent> {
    const before = { state: this.#state, attempt: this.#attempt };
    const state = stateSchema.parse(entry.state);
    this.#note({ state, attempt: this.#attempt, progress: this.#progress });
    yield* this.#changes(before);
    yield* this.#close();
    const ended = { id: entry.delegation_id, state, interrupt: null, error: error ?? null, reply: null };
    yield endOf(this.#ids, ended);
  }

  /** Ends what the run has begun. */
  *#close(): Generator<AgUiEvent> {
    yield* this.#subagents.suspend();
    yield* this.#texts.closeAll();
    yield* this.#changeStep();
  }
}
