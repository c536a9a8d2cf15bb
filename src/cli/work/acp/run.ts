/** Works on one delegation with an ACP agent: from its conversation and its prompts to the outcome. */
import { WorkerUnavailableError } from "../../../client/unavailable.ts";
import { durationText } from "../../../client/words.ts";
import type { Outcome, Work } from "../../../client/work.ts";
import { LeaseLostError, ParkedError } from "../../../lease-holder/lost.ts";
import { sleep } from "../../../util/timing.ts";
import type { CommandFiles } from "../command-files.ts";
import { ConversationUsage, usageNotKept } from "../presets/conversation-usage.ts";
import type { Session } from "../presets/sessions.ts";
import { wantedResult } from "../result.ts";
import { sendFiles } from "../returned-files.ts";
import { notKept } from "../run-task.ts";
import type { Assignment, Workspace } from "../workspace.ts";
import { Activity } from "./activity.ts";
import type { AgentProcess } from "./agent-process.ts";
import { brokerApprovals } from "./approvals.ts";
import { METHODS, type SessionListener } from "./connection.ts";
import { type Conversation, openConversation } from "./conversation.ts";
import { Desk } from "./desk.ts";
import { sendChanges } from "./diffs.ts";
import { toElicitation } from "./elicitation.ts";
import { FollowUps } from "./follow-ups.ts";
import { RunEnd } from "./limits.ts";
import { Notes } from "./notes.ts";
import { toPermission } from "./permission.ts";
import { decisionsText, editedAmong, firstWords, textBlock, withFiles } from "./prompt.ts";
import { promptedSchema } from "./schemas.ts";
import { failureOf } from "./session-failure.ts";
import type { AcpSetup } from "./setup.ts";
import { type Ending, endingOf, outcomeOf, UnsentError } from "./verdict.ts";

const GO_ON = "A person denied this. Go on without it, or say what is missing.";

export async function runWith(agent: AgentProcess, given: Assignment, setup: AcpSetup): Promise<Outcome> {
  const notes = await Notes.read(given.session.notes, given.task.delegation.id);
  const run = new Run(agent, given, setup, notes);
  return run.outcome();
}

class Run {
  readonly #agent: AgentProcess;
  readonly #workspace: Workspace;
  readonly #task: Work;
  readonly #session: Session;
  readonly #files: CommandFiles;
  readonly #setup: AcpSetup;
  readonly #notes: Notes;
  readonly #activity: Activity;
  readonly #desk: Desk;
  readonly #end: RunEnd;
  readonly #followUps: FollowUps;
  #sessionId: string | undefined;
  #conversationUsage: ConversationUsage | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(
    agent: AgentProcess,
    { task, workspace, session, files }: Assignment,
    setup: AcpSetup,
    notes: Notes,
  ) {
    this.#agent = agent;
    this.#workspace = workspace;
    this.#task = task;
    this.#session = session;
    this.#files = files;
    this.#setup = setup;
    this.#notes = notes;
    this.#activity = new Activity((progress) => task.progress(progress), agent.info.agentInfo?.name);
    this.#desk = new Desk({
      approvals: (setup.approvals ?? brokerApprovals)(task, setup),
      notes,
      answers: task.answers,
      collect: () => sleep(setup.collectMs),
      beforeAsking: async () => {
        await this.#sendFiles();
        // It is reported with the question, and must not be counted again if the worker ends.
        await this.#keepUsage();
      },
      whileAsked: (answered) => this.#end.without(answered),
      note: (text) => this.#activity.note(text),
    });
    this.#end = new RunEnd(task.signal, setup.limits);
    this.#followUps = new FollowUps(task);
  }

  async outcome(): Promise<Outcome> {
    const { limits } = this.#setup;
    this.#agent.onOutput = () => this.#end.active();
    try {
      const ending = await this.#finished().finally(() => this.#keepUsage());
      this.#setup.onUsage?.(this.#task, this.#activity.usage.usage);
      const send = (...chunk: Parameters<Work["artifact"]>) => this.#task.artifact(...chunk);
      const result = wantedResult(this.#task.delegation);
      return await outcomeOf(ending, this.#agent, this.#setup, { limits, send, result });
    } finally {
      this.#followUps.close();
      this.#end.close();
    }
  }

  async #finished(): Promise<Ending> {
    const ending = await this.#work().catch((error: unknown) => this.#stopped(error));
    try {
      await this.#sendFiles();
    } catch (error) {
      // What failed keeps its own error.
      if (!(error instanceof UnsentError)) throw error;
      return ending.kind === "answered" ? { kind: "unsent", unsent: error.unsent } : ending;
    }
    // A worktree shows more than what the agent reports.
    if (ending.kind === "answered" && !this.#workspace.isWorktree) await this.#sendChanges();
    return ending;
  }

  async #work(): Promise<Ending> {
    const { sessionId } = await this.#within(this.#open());
    this.#sessionId = sessionId;
    this.#conversationUsage = await ConversationUsage.read(this.#session.usage);
    const isSame = await this.#notes.begin(sessionId);
    let prompt = await this.#firstPrompt(isSame);
    // Until here, what the agent sends is the replay of a loaded conversation.
    const stopListening = this.#agent.listen(sessionId, this.#listener());
    try {
      for (;;) {
        this.#activity.restart();
        await this.#notes.gotFollowUps(this.#followUps.taken);
        const { stopReason } = await this.#prompt(sessionId, prompt);
        const { said, hasDenied } = this.#desk.takeSaid();
        // Some agents cancel the turn when a tool is denied.
        const isCanceled = stopReason === "cancelled" || this.#activity.ownWords?.kind === "canceled";
        const goesOn = hasDenied && isCanceled && said.length === 0 ? [GO_ON] : [];
        const next = [...said, ...goesOn, ...this.#followUps.take()];
        if (next.length === 0) {
          await this.#notes.finish();
          return { kind: "answered", answer: this.#activity.answer, stopReason };
        }
        this.#activity.show(this.#activity.answer);
        prompt = [textBlock(next.join("\n\n"))];
      }
    } finally {
      stopListening();
    }
  }

  async #open(): Promise<Conversation> {
    const { folder, artifacts } = this.#files;
    const { choice, noteUnknownMode, warn } = this.#setup;
    const { id: known, keep } = this.#session;
    const folders = folder === undefined ? [artifacts] : [folder, artifacts];
    const opening = openConversation(this.#agent, known, { cwd: this.#workspace.folder, folders, choice });
    const conversation = await this.#soon(opening);
    if (conversation.hasUnknownMode) noteUnknownMode();
    if (known !== undefined && !conversation.isContinued)
      this.#activity.note("The conversation of this context is gone; a new one begins.");
    if (conversation.sessionId !== known)
      await keep(conversation.sessionId).catch((error) => warn(notKept(error)));
    return conversation;
  }

  /** Within the time that the agent has to start. */
  async #soon<T>(opening: Promise<T>): Promise<T> {
    const { startTimeoutMs, openTimeoutMs = startTimeoutMs } = this.#setup;
    const timer = new AbortController();
    const late = sleep(openTimeoutMs, timer.signal).then(() => {
      const within = `within ${durationText(openTimeoutMs)} (--acp-start-timeout)`;
      throw new WorkerUnavailableError(`the agent opened no conversation ${within}`);
    });
    late.catch(() => undefined);
    return Promise.race([opening, late]).finally(() => timer.abort());
  }

  async #firstPrompt(isSame: boolean) {
    const { answers } = this.#task;
    const { asked, followUps } = this.#notes;
    const decisions = decisionsText(asked, answers);
    if (decisions !== undefined) this.#followUps.skip(followUps);
    for (const title of decisions === undefined ? [] : editedAmong(asked, answers))
      this.#activity.note(`'${title}' is denied, and the agent is told the edited arguments: it takes none.`);
    const said = [...firstWords(this.#task, decisions, isSame), ...this.#followUps.take()];
    const embeds = this.#agent.info.agentCapabilities?.promptCapabilities?.embeddedContext === true;
    const { words = [] } = wantedResult(this.#task.delegation) ?? {};
    return withFiles([...said, ...words].join("\n\n"), this.#files, embeds);
  }

  async #prompt(sessionId: string, prompt: readonly object[]) {
    const { traceparent } = this.#task;
    const turn = this.#agent.request(promptedSchema, METHODS.session.prompt, {
      sessionId,
      prompt,
      ...(traceparent !== undefined && { _meta: { traceparent } }),
    });
    this.#turn = turn.catch(() => undefined);
    const prompted = await this.#within(Promise.race([turn, this.#desk.parked]));
    // The lease has ended with the question.
    if (prompted === "parked") throw new ParkedError();
    this.#activity.usage.prompted(prompted);
    this.#reportUsage();
    const failure = failureOf(prompted, this.#activity.ownWords);
    if (failure !== undefined) throw failure;
    return prompted;
  }

  #reportUsage(): void {
    const [id, conversation] = [this.#sessionId, this.#conversationUsage];
    if (id === undefined || conversation === undefined) return;
    const report = this.#activity.usage.report((total) => conversation.since(id, total));
    if (Object.keys(report).length > 0) this.#task.usage(report);
  }

  /** For the next run in the conversation. */
  async #keepUsage(): Promise<void> {
    const id = this.#sessionId;
    if (id !== undefined)
      await this.#conversationUsage?.keep(id).catch((error) => this.#setup.warn(usageNotKept(error)));
  }

  #within<T>(promise: Promise<T>): Promise<T> {
    return Promise.race([promise, this.#end.reached]);
  }

  #listener(): SessionListener {
    return {
      onUpdate: (update) => {
        this.#activity.add(update);
        if (update.sessionUpdate === "usage_update") this.#reportUsage();
      },
      onPermission: async ({ toolCall, options }) => {
        const asked = toPermission(this.#activity.tool(toolCall), options);
        if ("title" in asked) return this.#desk.handle(asked);
        this.#activity.note(`${asked.why}.`);
        this.#desk.say(asked.why);
        return asked.response;
      },
      onElicitation: async (elicitation) => {
        const asked = toElicitation(elicitation);
        return asked === undefined ? { action: "decline" } : this.#desk.handle(asked);
      },
    };
  }

  /** Ends what the agent still does. Rejects if no reply is wanted any more. */
  async #stopped(error: unknown): Promise<Ending> {
    const { reason } = this.#task.signal;
    if (error instanceof ParkedError || reason instanceof ParkedError) {
      // Nothing is answered: an agent that is resumed asks again.
      await sleep(this.#setup.settleMs);
      await this.#agent.end();
      throw error;
    }
    const isCanceled = reason instanceof LeaseLostError && reason.reason === "canceled";
    this.#cancel();
    if (isCanceled) {
      const grace = new AbortController();
      const late = sleep(this.#setup.cancelGraceMs, grace.signal).then(
        () => "late",
        () => "done",
      );
      const how = await Promise.race([this.#turn.then(() => "done"), late]);
      grace.abort();
      // Some agents end the turn, and let the command of a tool run on.
      if (how === "done" && this.#activity.hasOpenCall) await this.#agent.end();
      if (how === "done") throw error;
    }
    const ending = await endingOf(error, this.#agent);
    if (ending === undefined) throw error;
    return ending;
  }

  #cancel(): void {
    if (this.#sessionId !== undefined) this.#agent.cancel(this.#sessionId);
    this.#desk.cancelAll();
  }

  async #sendFiles(): Promise<void> {
    const unsent = await sendFiles(this.#files.artifacts, this.#task);
    if (unsent !== undefined) throw new UnsentError(unsent);
  }

  async #sendChanges(): Promise<void> {
    const left = await sendChanges(this.#activity.changes, this.#workspace.folder, this.#task.artifact);
    if (left > 0) this.#activity.note(`${left} changed files are not among the artifacts.`);
  }
}
