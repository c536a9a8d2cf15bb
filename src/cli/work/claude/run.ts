/** Works on one delegation with Claude Code: from its conversation to the outcome. */
import { dirname } from "node:path";
import type { Outcome, Work } from "../../../client/work.ts";
import { ParkedError } from "../../../lease-holder/lost.ts";
import { sleep } from "../../../util/timing.ts";
import { Activity } from "../acp/activity.ts";
import { brokerApprovals } from "../acp/approvals.ts";
import { Desk } from "../acp/desk.ts";
import { ProtocolError } from "../acp/errors.ts";
import { FollowUps } from "../acp/follow-ups.ts";
import { RunEnd } from "../acp/limits.ts";
import { Notes } from "../acp/notes.ts";
import { decisionsText, firstWords } from "../acp/prompt.ts";
import { UnsentError } from "../acp/verdict.ts";
import { envFor } from "../command-env.ts";
import type { CommandFiles } from "../command-files.ts";
import { cannotStart } from "../command-reply.ts";
import { claude } from "../presets/claude.ts";
import { ConversationUsage, usageNotKept } from "../presets/conversation-usage.ts";
import { foldersOf, promptOf } from "../presets/prompt.ts";
import type { PresetRun } from "../presets/run.ts";
import type { Session } from "../presets/sessions.ts";
import { type WantedResult, wantedResult } from "../result.ts";
import { sendFiles } from "../returned-files.ts";
import { notKept } from "../run-task.ts";
import type { Assignment, Workspace } from "../workspace.ts";
import { argumentsOf } from "./claude-process.ts";
import { Deciding } from "./deciding.ts";
import { Hook, type HookAnswer, type HookCall } from "./hook.ts";
import type { ClaudeSetup } from "./setup.ts";
import { type Said, Talk, type Talked } from "./talk.ts";
import { endsWork, outcomeOf, outcomeOfError } from "./verdict.ts";

export async function runClaude(given: Assignment, setup: ClaudeSetup): Promise<Outcome> {
  const { task, session } = given;
  const notes = await Notes.read(session.notes, task.delegation.id);
  const usage = await ConversationUsage.read(session.usage);
  return new Run(given, setup, { notes, usage }).outcome();
}

class Run {
  readonly #task: Work;
  readonly #workspace: Workspace;
  readonly #session: Session;
  readonly #files: CommandFiles;
  readonly #setup: ClaudeSetup;
  readonly #notes: Notes;
  readonly #usage: ConversationUsage;
  readonly #activity: Activity;
  readonly #desk: Desk;
  readonly #deciding: Deciding;
  readonly #end: RunEnd;
  readonly #followUps: FollowUps;
  #talk: Talk | undefined;
  /** Messages that an earlier process has not read. */
  #untaken: readonly Said[] = [];
  #kept: string | undefined;
  #keeping: Promise<void> = Promise.resolve();

  constructor(
    { task, workspace, session, files }: Assignment,
    setup: ClaudeSetup,
    { notes, usage }: { readonly notes: Notes; readonly usage: ConversationUsage },
  ) {
    this.#task = task;
    this.#workspace = workspace;
    this.#session = session;
    this.#files = files;
    this.#setup = setup;
    this.#notes = notes;
    this.#usage = usage;
    this.#kept = session.id;
    this.#activity = new Activity((progress) => task.progress(progress), undefined);
    this.#desk = new Desk({
      approvals: (setup.approvals ?? brokerApprovals)(task, setup),
      notes,
      answers: task.answers,
      collect: () => sleep(setup.collectMs),
      beforeAsking: () => this.#sendFiles(),
      whileAsked: (answered) => this.#end.without(answered),
      note: (text) => this.#activity.note(text),
    });
    this.#deciding = new Deciding(this.#desk, this.#activity);
    this.#end = new RunEnd(task.signal, setup.limits);
    this.#followUps = new FollowUps(task, () => this.#talk?.sendMore());
  }

  async outcome(): Promise<Outcome> {
    let hook: Hook | undefined;
    try {
      if (this.#setup.parks)
        hook = await Hook.open(dirname(this.#files.answers), (call) => this.#beforeCall(call));
      const talked = await this.#work(hook?.settings);
      // What failed keeps its own error.
      await this.#sendFiles().catch((error: unknown) => {
        if (!(error instanceof UnsentError) || talked.verdict(false).kind === "completed") throw error;
      });
      return await outcomeOf(talked, this.#setup, this.#task);
    } catch (error) {
      return await this.#stopped(error);
    } finally {
      await this.#keeping;
      if (this.#kept !== undefined)
        await this.#usage.keep(this.#kept).catch((error) => this.#setup.warn(usageNotKept(error)));
      this.#followUps.close();
      this.#end.close();
      hook?.close();
    }
  }

  async #beforeCall(call: HookCall): Promise<HookAnswer> {
    this.#talk?.goesOn();
    try {
      return await this.#deciding.beforeCall(call);
    } catch (error) {
      this.#desk.fail(error);
      throw error;
    }
  }

  async #work(settings: string | undefined): Promise<Talked> {
    const { id } = this.#session;
    let talked = await this.#talkOn(id, await this.#firstPrompt(id), settings);
    if (id !== undefined && talked.verdict(true).kind === "gone") {
      this.#activity.note("The conversation of this context is gone; a new one begins.");
      // The first prompt has all of it.
      this.#untaken = [];
      talked = await this.#talkOn(undefined, await this.#firstPrompt(undefined), settings);
    }
    while (talked.deferred !== undefined) {
      await this.#within(this.#deciding.decideDeferred(talked.deferred));
      talked = await this.#talkOn(talked.session, undefined, settings);
    }
    if (endsWork(talked)) await this.#notes.finish();
    return talked;
  }

  /** One process, until it ends. Without a prompt, it goes on with the call that was put off. */
  async #talkOn(
    session: string | undefined,
    prompt: Said | undefined,
    settings: string | undefined,
  ): Promise<Talked> {
    const { program, extra, environment, children, goesOnMs } = this.#setup;
    this.#deciding.restart();
    const given = {
      settings,
      extra: [...(this.#wanted?.args(this.#files.resultSchema ?? "") ?? []), ...extra],
    };
    const talk = new Talk({
      command: [program, ...argumentsOf(session, foldersOf(this.#files), given)],
      env: envFor(this.#task, environment, this.#files),
      cwd: this.#workspace.folder,
      children,
      onStart: this.#files.runsAs,
      onOutput: () => this.#end.active(),
      activity: this.#activity,
      deciding: this.#deciding,
      takeMore: () => this.#takeMore(),
      onSession: (id) => this.#keep(id),
      onResult: (run) => this.#reportUsage(run),
      onFailure: (error) => this.#desk.fail(error),
    });
    this.#talk = talk;
    if (prompt !== undefined) talk.say(prompt);
    else talk.goOn(goesOnMs);
    const talked = await this.#within(
      talk.ended.catch((error: unknown) => {
        throw error instanceof ProtocolError ? error : cannotStart(program, error);
      }),
    );
    this.#untaken = [...this.#untaken, ...talk.untaken];
    return talked;
  }

  /** Undefined if the conversation keeps a call that a person has decided: it goes on by itself. */
  async #firstPrompt(session: string | undefined): Promise<Said | undefined> {
    const isSame = await this.#notes.begin(session ?? "");
    const { answers } = this.#task;
    const { asked, followUps } = this.#notes;
    const decisions = decisionsText(asked, answers, { takesEdits: true });
    this.#followUps.skip(decisions === undefined ? 0 : followUps);
    if (asked.some(({ call, used, request_id }) => call !== undefined && !used && answers.has(request_id)))
      return undefined;
    const said = [...firstWords(this.#task, decisions, isSame), ...this.#followUps.take()];
    const { words = [] } = this.#wanted ?? {};
    return { text: promptOf([...said, ...words], this.#files), onTaken: this.#noteFollowUps() };
  }

  get #wanted(): WantedResult | undefined {
    return wantedResult(this.#task.delegation, claude);
  }

  /** The messages that the program must still get. */
  #takeMore(): Said[] {
    const untaken = this.#untaken;
    this.#untaken = [];
    const said = this.#desk.takeSaid().said.map((text) => ({ text }));
    const more = this.#followUps.take();
    const onTaken = this.#noteFollowUps();
    const last = more.length - 1;
    return [...untaken, ...said, ...more.map((text, at) => (at === last ? { text, onTaken } : { text }))];
  }

  /** Notes, when it is called, that the program has got the follow-ups that were taken until now. */
  #noteFollowUps(): () => void {
    const count = this.#followUps.taken;
    return () => void this.#notes.gotFollowUps(count).catch(() => undefined);
  }

  async #keep(id: string): Promise<void> {
    if (id === this.#kept) return;
    this.#kept = id;
    this.#notes.renamed(id);
    this.#keeping = this.#session.keep(id).catch((error) => this.#setup.warn(notKept(error)));
    await this.#keeping;
  }

  #reportUsage({ used: { conversationUsage }, session }: PresetRun): void {
    if (conversationUsage !== undefined && session !== undefined)
      this.#task.usage(this.#usage.since(session, conversationUsage));
  }

  /** Rejects if a question or a limit ends the run. */
  #within<T>(promise: Promise<T>): Promise<T> {
    const parked = this.#desk.parked.then(() => {
      throw new ParkedError();
    });
    return Promise.race([promise, parked, this.#end.reached]);
  }

  async #stopped(error: unknown): Promise<Outcome> {
    const isParked = error instanceof ParkedError || this.#task.signal.reason instanceof ParkedError;
    // Nothing is answered: the conversation goes on with another process.
    if (isParked) await sleep(this.#setup.settleMs);
    await this.#talk?.end();
    if (isParked) throw error;
    this.#desk.cancelAll();
    return outcomeOfError(error, this.#setup, this.#task);
  }

  async #sendFiles(): Promise<void> {
    const unsent = await sendFiles(this.#files.artifacts, this.#task);
    if (unsent !== undefined) throw new UnsentError(unsent);
  }
}
