/** `errand work`: turns any command into an agent that polls. It runs the command once for each lease. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { Admin } from "../../client/admin.ts";
import { Agent } from "../../client/agent.ts";
import type { Outcome, Reply, Work } from "../../client/work.ts";
import { MAX_TIMER_MS } from "../../util/timing.ts";
import { type Cli, connect, examples, type GlobalOptions } from "../context.ts";
import type { CliHost } from "../host.ts";
import { agentName, wholeBetween } from "../input/arguments.ts";
import { duration } from "../input/duration.ts";
import { note, oneLine } from "../show/output.ts";
import { interruptible } from "../signals.ts";
import { ChildProcesses, type CommandResult, type CommandRun, type RunLimits, type Source } from "./child.ts";
import { type CommandEnvironment, envFor } from "./command-env.ts";
import { createCommandFiles } from "./command-files.ts";
import { toProgress } from "./command-progress.ts";
import { EXIT_QUESTION, isQuestionLine, toQuestion } from "./command-question.ts";
import { cannotStart, toReply } from "./command-reply.ts";
import { checkCommand } from "./find-command.ts";
import { claude } from "./presets/claude.ts";
import { codex } from "./presets/codex.ts";
import type { Preset } from "./presets/preset.ts";
import { PresetRun } from "./presets/run.ts";
import { type Session, Sessions } from "./presets/sessions.ts";
import { sendFiles, withUnsent } from "./returned-files.ts";
import { removeLeftBehind } from "./temp-folder.ts";
import { agentOptions, ensureAgent, type WorkerOptions, withWorkerOptions } from "./worker.ts";

type WorkOptions = GlobalOptions &
  WorkerOptions & {
    readonly timeout?: number;
    readonly idleTimeout?: number;
    readonly progressFd?: number;
    readonly preset?: keyof typeof PRESETS | "shell";
  };

const PRESETS = { claude, codex } as const;

const ABOUT = `
The task:
The command gets it on stdin. Its environment has:
  ERRAND_TASK            the task, up to 32 KiB
  ERRAND_FILES_DIR       a folder with the files that came with it, if any
  ERRAND_DELEGATION_ID, ERRAND_LEASE_ID, ERRAND_ATTEMPT, ERRAND_CONTEXT_ID
  ERRAND_AUTO_APPROVE    what the delegator approved in advance, if anything:
                         true, or {"actions": [...]}
  ERRAND_MESSAGES_FILE   a file to which follow-up messages are appended while
                         it runs, one A2A Message as JSON per line

The answer:
All of stdout is the answer. The exit status decides what becomes of the delegation:
  0      completed
  75     another attempt
  79     asks a question
  other  failed, with the error command_failed and the last lines of stderr
Output of more than 64 KiB and output that is not text become the artifact 'stdout'. Output of more than 3 MiB fails the
delegation with the error output_too_large.

Files:
  ERRAND_ARTIFACTS_DIR   an empty folder, new for each attempt
The files that are in it when the command ends, also with a question or a failure, become artifacts. The name of each is
its path in the folder; links are left out. The folder is then removed. Files that do not fit the delegation (3 MiB with
everything else, and files grow by a third on the way) fail it with the error output_too_large. Another attempt starts
without the files of the one before.

Progress:
Each line of stdout and stderr is reported as progress, with --progress-fd only the lines of that file descriptor. A
line {"progress": {...}} on stderr or the file descriptor reports message, current_step, tools_used, done, total and
eta_seconds; any other line of text is a message.

A question:
Print it to stdout and exit with 79. To ask for more than a text, print JSON as the last line, for example
{"interrupt": {"text": "Which?", "options": ["a", "b"]}}. Its fields are those of POST /v1/leases/{id}/interrupt: kind,
text, message, request_id, options, schema, action, edit, requests, expires_in_seconds. After the answer, the command
runs again from the start, with the same stdin, and also with:
  ERRAND_DECISION        approve or deny, if the newest answer is a decision
  ERRAND_ANSWER          its text, up to 32 KiB, if it has one
  ERRAND_ANSWERS_FILE    a JSON file with all answers so far: {"<request_id>":
                         {"text"?, "decision"?, "data"?, "by", "at", "message"}}
A plain deny sets no ERRAND_ANSWER. With edit, the data of an answer replaces the arguments of the action.

The end:
With --timeout and --idle-timeout, a command that takes too long is stopped and fails the delegation with the error
command_timeout. A command that is stopped, also because the delegation was canceled, gets SIGTERM, and SIGKILL after
5 s, with all processes of its group. Processes that a command leaves behind in the background are ended 2 s after it;
on Linux also those in sessions of their own (setsid, daemons), unless they drop ERRAND_MESSAGES_FILE from their environment.
In a container, start the worker with an init (docker run --init): as process 1 it does not reap what others leave.
Ctrl-C returns the work to the queue.

An outage of the broker:
While the broker does not answer, the command runs on and a finished result is kept, until the broker answers. A worker that
is cut off alone cannot know whether another worker has the work by now. So a command that still runs after twice the
length of the lease (--lease) is stopped, and its work is returned, which costs no attempt. With --keep-running it runs on:
of two results one counts, but side effects may happen twice.

Tokens:
Of the worker's own ERRAND_ variables, which may be secrets, the command gets only ERRAND_URL. For a command that
delegates parts of its work with 'errand delegate --parent "$ERRAND_DELEGATION_ID"', give the worker a token of the same
agent in ERRAND_COMMAND_TOKEN: the command gets it as ERRAND_TOKEN, with the broker's ERRAND_URL.

Presets:
With --preset claude or codex, the program gets the task on stdin. Its final message is the answer, and its steps are
progress. The next delegation of the same delegator in the same context continues the conversation; the ids are kept in
~/.local/state/errand. Arguments after '--' go to the program: without them, it may do what its own settings allow. See
docs/workers.md. --preset shell runs what delegators send as a script: limit them with 'agent put --accepts-from'.`;

export function addWork(program: Command, { host }: Cli): void {
  const command = program
    .command("work")
    .description("act as an agent: run a command for each delegation and reply with its output")
    .requiredOption("--agent <name>", "the agent to work for; created if it does not exist", agentName)
    .argument(
      "[command...]",
      "the command and its arguments, after '--'; with --preset, more arguments for its program",
    )
    .addOption(
      new Option("--preset <program>", "run this program; 'shell' runs the task as a shell script").choices([
        ...Object.keys(PRESETS),
        "shell",
      ]),
    )
    .option("--concurrency <n>", "maximum delegations at once (default 1)", wholeBetween(1, 1000))
    .option(
      "--timeout <duration>",
      "stop a command that runs longer: 90s, 30m, 2h (default: no limit)",
      duration,
    )
    .option("--idle-timeout <duration>", "stop a command that prints nothing for this long", duration)
    .option(
      "--keep-running",
      "let a command run on while the broker does not answer, although its side effects may then happen twice",
    )
    .option(
      "--progress-fd <n>",
      "take progress only from this file descriptor: 2 (stderr), or 3 to 9, which is opened for the command",
      wholeBetween(2, 9),
    );
  withWorkerOptions(command)
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        "errand work --agent scout -- wc -w",
        "errand work --agent reviewer --preset claude --timeout 30m -- --permission-mode acceptEdits",
        "errand work --agent deployer -- sh -c '[ \"$ERRAND_DECISION\" ] || { echo Go?; exit 79; }; ./$ERRAND_DECISION.sh'",
        "errand work --agent plotter -- sh -c './plot > \"$ERRAND_ARTIFACTS_DIR/plot.png\" && echo plotted'",
        "errand work --agent builder --concurrency 4 --timeout 30m -- sh -c 'make \"$ERRAND_TASK\" >&2 && cat report'",
      ),
    )
    .action(async (words: string[], _options: unknown, command: Command) => {
      await work(host, words, command.optsWithGlobals<WorkOptions>());
    });
}

/** A process without a parent becomes a child of process 1, which must wait for it. Node waits only for its own. */
const NEEDS_INIT =
  "this is process 1 of a container and does not reap the processes that commands leave behind; start it with an init: docker run --init, 'init: true' in compose, or tini.";

async function work(host: CliHost, words: readonly string[], options: WorkOptions): Promise<void> {
  const preset = options.preset && options.preset !== "shell" ? PRESETS[options.preset] : undefined;
  const program = options.preset === "shell" ? "sh" : (preset?.program ?? words[0]);
  if (program === undefined)
    throw new InvalidArgumentError("Pass a command after '--', or --preset claude, codex or shell.");
  await checkCommand(program, host.childEnv.PATH, preset?.install);
  const connection = await connect(host, options);
  const children = new ChildProcesses();
  const job: Job = {
    start: startOf(program, options.preset, words),
    preset,
    children,
    sessions: new Sessions(host.childEnv.XDG_STATE_HOME),
    warn: (text) => void note(host, text).catch(() => undefined),
    environment: { inherited: host.childEnv, url: connection.url, progressFd: options.progressFd },
    limits: {
      timeoutMs: toMs(options.timeout),
      idleTimeoutMs: toMs(options.idleTimeout),
      progressFd: options.progressFd,
    },
  };
  const agent = new Agent({ ...connection, ...agentOptions(host, options) }, (task) => handle(task, job));
  await interruptible(
    async (signal) => {
      await removeLeftBehind();
      const isOurs = await ensureAgent(new Admin(connection), options.agent, signal);
      if (isOurs && !options.quiet && !options.json)
        await note(host, `working for ${options.agent} as ${agent.workerId}; press Ctrl-C to stop.`);
      if (process.pid === 1 && !options.json) await note(host, NEEDS_INIT);
      await agent.run(signal);
      signal.throwIfAborted();
    },
    () => children.killAll(),
  );
}

/** The parts that all delegations share. */
interface Job {
  readonly start: (task: Work, session: string | undefined) => Start;
  readonly preset: Preset | undefined;
  readonly children: ChildProcesses;
  readonly sessions: Sessions;
  /** Prints a line for the person who runs the worker. */
  readonly warn: (text: string) => void;
  readonly environment: CommandEnvironment;
  readonly limits: RunLimits;
}

interface Start {
  readonly command: readonly [string, ...string[]];
  readonly input: string;
  /** Becomes a file. As an argument, it could be read by all users of the machine, and would have to be short. */
  readonly script?: string;
}

/**
 * Arguments of `sh` before the path of a script. The delegator gets the messages of the shell, and the path would be in
 * them: so the shell reads the file first, and is called `sh` there. The variable's name is one that no environment has,
 * because a variable of the environment would be passed on to all commands of the script. The space is for scripts that
 * begin with a dash.
 */
const READ_SCRIPT = ["-c", '_errand_task=$(cat "$1") || exit; shift; eval " $_errand_task"', "sh"] as const;

function startOf(program: string, preset: WorkOptions["preset"], words: readonly string[]): Job["start"] {
  if (preset === undefined) return ({ text }) => ({ command: [program, ...words.slice(1)], input: text });
  if (preset === "shell") return ({ text }) => ({ command: [program, ...words], input: "", script: text });
  const { args } = PRESETS[preset];
  return ({ text }, session) => ({ command: [program, ...args(session, words)], input: text });
}

async function handle(task: Work, job: Job): Promise<Outcome> {
  const { preset } = job;
  if (preset !== undefined)
    return job.sessions.use(preset.program, task, (session) => runPreset(task, job, preset, session));
  const result = await runCommand(task, job, job.start(task, undefined));
  if (!("exitCode" in result)) return result;
  if (result.exitCode === EXIT_QUESTION && result.stoppedBy === undefined) return toQuestion(result);
  return toReply(result, replyContext(task, job));
}

const replyContext = (task: Work, { limits }: Job) => ({
  limits,
  send: (...chunk: Parameters<Work["artifact"]>) => task.artifact(...chunk),
});

async function runPreset(task: Work, job: Job, preset: Preset, session: Session): Promise<Outcome> {
  const run = new PresetRun(preset, (text) => {
    const progress = toProgress(text, false);
    if (progress !== undefined) task.progress(progress);
  });
  const result = await runCommand(task, job, job.start(task, session.id), run);
  if (!("exitCode" in result)) return result;
  const reply = await toReply(run.result(result), replyContext(task, job));
  // If the conversation could not be continued, the next run begins a new one.
  if (run.session !== session.id) await session.keep(run.session).catch((error) => job.warn(notKept(error)));
  return reply;
}

const notKept = (error: unknown): string =>
  `cannot store the conversation, so the next delegation of its context begins a new one: ${oneLine(String(error))}`;

/** Returns a reply if the command cannot be started. */
async function runCommand(
  task: Work,
  { children, environment, limits, warn }: Job,
  { command, input, script }: Start,
  preset?: PresetRun,
): Promise<CommandResult | Reply> {
  const files = await createCommandFiles(task, script);
  const [program, ...words] = command;
  const run: CommandRun = {
    command: files.script === undefined ? command : [program, ...READ_SCRIPT, files.script, ...words],
    env: envFor(task, environment, files),
    input,
    signal: task.signal,
    limits,
    onStart: files.runsAs,
    onStdout: preset && ((chunk) => preset.add(chunk)),
    onLine: (line, from) => {
      const progress = preset ? undefined : progressOf(line, from, limits.progressFd);
      if (progress !== undefined) task.progress(progress);
    },
  };
  try {
    const result = await children.run(run).catch((error: unknown) => {
      task.signal.throwIfAborted();
      return cannotStart(program, error);
    });
    if (!("exitCode" in result)) return result;
    const unsent = await sendFiles(files.artifacts, task.artifact);
    return unsent === undefined ? result : withUnsent(result, unsent);
  } finally {
    // The work is done, whatever becomes of its files.
    await files
      .remove()
      .catch((error: unknown) =>
        warn(`cannot remove the files of ${task.delegation.id}: ${oneLine(String(error))}`),
      );
  }
}

function progressOf(line: string, from: Source, fd: number | undefined) {
  const wanted = fd === undefined || from === (fd === 2 ? "stderr" : "progress");
  if (!wanted || isQuestionLine(line)) return undefined;
  return toProgress(line, from !== "stdout");
}

const toMs = (seconds: number | undefined): number | undefined =>
  seconds && Math.min(seconds * 1000, MAX_TIMER_MS);
