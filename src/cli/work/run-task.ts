/** Runs the command of `errand work` for one delegation, and turns its end into the handler's outcome. */
import type { QuestionOutcome } from "../../client/questions.ts";
import type { WaitedFor } from "../../client/wait-for.ts";
import type { Outcome, Reply, Work } from "../../client/work.ts";
import { oneLine } from "../show/output.ts";
import type { ChildProcesses, CommandResult, CommandRun, RunLimits, Source } from "./child.ts";
import { type CommandEnvironment, envFor } from "./command-env.ts";
import type { CommandFiles } from "./command-files.ts";
import { OutputProgress, toProgress } from "./command-progress.ts";
import { EXIT_QUESTION, isQuestionLine, toQuestion } from "./command-question.ts";
import { cannotStart, throwIfUnavailable, toReply } from "./command-reply.ts";
import { CommandUsage } from "./command-usage.ts";
import { CommandWaits, isWaitLine, missedWait } from "./command-wait.ts";
import { isCompleted } from "./is-completed.ts";
import { ConversationUsage, usageNotKept } from "./presets/conversation-usage.ts";
import type { Preset } from "./presets/preset.ts";
import { PresetRun } from "./presets/run.ts";
import type { Session, Sessions } from "./presets/sessions.ts";
import { wantedResult } from "./result.ts";
import { sendFiles, withUnsent } from "./returned-files.ts";
import { toVerdictReply } from "./verdict-reply.ts";
import { withCommandFiles } from "./with-command-files.ts";
import type { Workspace } from "./workspace.ts";

/** The parts that all delegations share. */
export interface Job {
  readonly start: (task: Work, session: string | undefined, files: CommandFiles) => Start;
  /** The task is the script. */
  readonly runsScripts: boolean;
  readonly preset: Preset | undefined;
  readonly children: ChildProcesses;
  readonly sessions: Sessions;
  /** Prints a line for the person who runs the worker. */
  readonly warn: (text: string) => void;
  readonly environment: CommandEnvironment;
  readonly limits: RunLimits;
  /** One delegation at least was completed. */
  hasWorked: boolean;
}

export interface Start {
  readonly command: readonly [string, ...string[]];
  readonly input: string;
}

export async function runTask(task: Work, workspace: Workspace, job: Job): Promise<Outcome> {
  const { preset } = job;
  const outcome =
    preset === undefined
      ? await runOnce(task, workspace, job)
      : await job.sessions.use(preset.program, workspace.folder, task, (session) =>
          runPreset(task, workspace, job, preset, session),
        );
  job.hasWorked ||= isCompleted(outcome);
  return outcome;
}

async function runOnce(task: Work, workspace: Workspace, job: Job): Promise<Reply | QuestionOutcome> {
  const waits = new CommandWaits(task);
  const usage = usageOf(task, job);
  for (;;) {
    const result = await runCommand(task, workspace, job, { usage, waited: waits.newest });
    if (!("exitCode" in result)) return result;
    if (result.exitCode !== EXIT_QUESTION || result.stoppedBy !== undefined) {
      return missedWait(result) ?? replyOf(result, task, job);
    }
    const waited = await waits.wait(result);
    if (waited !== "again") return waited ?? toQuestion(result);
  }
}

const usageOf = (task: Work, { warn }: Job): CommandUsage =>
  new CommandUsage(
    (used) => task.usage(used),
    (why) => warn(`${task.delegation.id}: ERRAND_USAGE_FILE has no usage: ${oneLine(why, 200)}`),
  );

async function replyOf(result: CommandResult, task: Work, job: Job): Promise<Reply> {
  // A script of a delegator may end as it likes.
  if (!job.runsScripts) throwIfUnavailable(result, job.hasWorked);
  return toReply(result, replyContext(task, job));
}

const replyContext = (task: Work, { limits, preset }: Job) => ({
  limits,
  send: (...chunk: Parameters<Work["artifact"]>) => task.artifact(...chunk),
  result: wantedResult(task.delegation, preset),
});

async function runPreset(
  task: Work,
  workspace: Workspace,
  job: Job,
  preset: Preset,
  session: Session,
): Promise<Reply> {
  const usage = usageOf(task, job);
  const begin = async (id: string | undefined) => {
    const run = new PresetRun(preset, (text) => {
      const progress = toProgress(text, false);
      if (progress !== undefined) task.progress(progress);
    });
    return { run, result: await runCommand(task, workspace, job, { usage, session: id, preset: run }) };
  };
  let { run, result } = await begin(session.id);
  if (!("exitCode" in result)) return result;
  if (result.stoppedBy === undefined && run.verdict(result, session.id !== undefined).kind === "gone") {
    task.progress({
      message: `${preset.name} could not continue the conversation of this context; a new one begins.`,
    });
    ({ run, result } = await begin(undefined));
    if (!("exitCode" in result)) return result;
  }
  await reportUsage(task, run, session).catch((error) => job.warn(usageNotKept(error)));
  if (result.stoppedBy === undefined && !run.began) throwIfUnavailable(result, job.hasWorked);
  const reply =
    result.stoppedBy === undefined
      ? await toVerdictReply(run.verdict(result, false), run, replyContext(task, job))
      : await toReply(result, replyContext(task, job));
  // A run that did not begin says nothing about the conversation.
  if (run.began && run.session !== session.id)
    await session.keep(run.session).catch((error) => job.warn(notKept(error)));
  return reply;
}

async function reportUsage(task: Work, { used, session }: PresetRun, { id, usage }: Session): Promise<void> {
  if (used.usage) task.usage(used.usage);
  const conversation = session ?? id;
  if (used.conversationUsage === undefined || conversation === undefined) return;
  const totals = await ConversationUsage.read(usage);
  task.usage(totals.since(conversation, used.conversationUsage));
  await totals.keep(conversation);
}

export const notKept = (error: unknown): string =>
  `cannot store the conversation, so the next delegation of its context begins a new one: ${oneLine(String(error))}`;

interface Run {
  readonly usage: CommandUsage;
  readonly session?: string | undefined;
  readonly preset?: PresetRun;
  readonly waited?: WaitedFor | undefined;
}

/** Returns a reply if its files cannot be returned. Throws if the command cannot be started. */
async function runCommand(
  task: Work,
  { folder }: Workspace,
  job: Job,
  { usage, session, preset, waited }: Run,
): Promise<CommandResult | Reply> {
  const { children, environment, limits, warn } = job;
  const script = job.runsScripts ? task.text : undefined;
  return withCommandFiles(task, { script, waited, warn }, async (files) => {
    const { command, input } = job.start(task, session, files);
    const [program] = command;
    const output = new OutputProgress((progress) => task.progress(progress));
    const run: CommandRun = {
      command,
      env: envFor(task, environment, files),
      cwd: folder,
      input,
      signal: task.signal,
      limits,
      onStart: files.runsAs,
      onStdout: preset && ((chunk) => preset.add(chunk)),
      onStderr: preset && ((chunk) => preset.addStderr(chunk)),
      onLine: (line, from) => {
        const progress = preset ? undefined : progressOf(line, from, limits.progressFd);
        if (progress === undefined) return;
        if (from === "stdout") output.push(progress);
        else task.progress(progress);
      },
    };
    const result = await usage
      .during(files.usage, () => children.run(run).finally(() => output.end()))
      .catch((error: unknown) => {
        task.signal.throwIfAborted();
        throw cannotStart(program, error);
      });
    const unsent = await sendFiles(files.artifacts, task);
    return unsent === undefined ? result : withUnsent(result, unsent);
  });
}

function progressOf(line: string, from: Source, fd: number | undefined) {
  const wanted = fd === undefined || from === (fd === 2 ? "stderr" : "progress");
  if (!wanted || isQuestionLine(line) || isWaitLine(line)) return undefined;
  return toProgress(line, from !== "stdout");
}
