/** `errand work`: turns any command into an agent that polls. It runs the command once for each lease. */
import { join } from "node:path";
import { cwd } from "node:process";
import { type Command, InvalidArgumentError, Option } from "commander";
import { Admin } from "../../client/admin.ts";
import { Agent } from "../../client/agent.ts";
import type { Handler, Outcome, Reply, Work } from "../../client/work.ts";
import { MAX_TIMER_MS } from "../../util/timing.ts";
import { type Cli, connect, examples, type GlobalOptions } from "../context.ts";
import type { CliHost } from "../host.ts";
import { agentName, wholeBetween } from "../input/arguments.ts";
import { duration } from "../input/duration.ts";
import { stateFolder } from "../kept-text.ts";
import { note } from "../show/output.ts";
import { interruptible } from "../signals.ts";
import { type AcpChoice, type AcpFlags, acpChoice, withAcpOptions } from "./acp/options.ts";
import { ChildProcesses } from "./child.ts";
import { type ClaudeChoice, type ClaudeFlags, claudeChoice, withClaudeOptions } from "./claude/setup.ts";
import { ClaudeWorker } from "./claude/worker.ts";
import { checkCommand } from "./find-command.ts";
import { PROGRAMS } from "./presets/programs.ts";
import { foldersOf, promptOf } from "./presets/prompt.ts";
import { Sessions } from "./presets/sessions.ts";
import { type AcpWay, type HeadlessWay, wayOf } from "./presets/way.ts";
import { wantedResult } from "./result.ts";
import { type Job, runTask } from "./run-task.ts";
import { removeLeftBehind } from "./temp-folder.ts";
import {
  agentOptions,
  connectForLeases,
  ensureAgent,
  mayLease,
  type WorkerOptions,
  withWorkerOptions,
} from "./worker.ts";
import { here, type Workspace } from "./workspace.ts";
import { Git, GitError, withoutRepository } from "./worktree/git.ts";
import { Worktrees } from "./worktree/worktrees.ts";

type WorkOptions = GlobalOptions &
  WorkerOptions &
  AcpFlags &
  ClaudeFlags & {
    readonly timeout?: number;
    readonly idleTimeout?: number;
    readonly progressFd?: number;
    readonly worktree?: boolean;
    readonly preset?: keyof typeof PROGRAMS | "shell";
  };

const ABOUT = `
The task:
The command gets it on stdin. Its environment has:
  ERRAND_TASK            the task, up to 32 KiB
  ERRAND_FILES_DIR       a folder with the files that came with it, if any
  ERRAND_DELEGATION_ID, ERRAND_LEASE_ID, ERRAND_ATTEMPT, ERRAND_CONTEXT_ID
  ERRAND_AUTO_APPROVE    what the delegator approved in advance, if anything:
                         true, or {"actions": [...]}
  ERRAND_RESULT_SCHEMA_FILE
                         a file with the JSON Schema that the result must fit,
                         if the delegator gave one
  ERRAND_MESSAGES_FILE   a file to which follow-up messages are appended while
                         it runs, one A2A Message as JSON per line

The answer:
All of stdout is the answer. The exit status decides what becomes of the delegation:
  0      completed
  69     returned without an attempt, and the worker pauses: no work would
         succeed now; so do 126 and 127 (a program is missing) until the
         worker's first success
  75     another attempt
  79     asks a question, or waits for children that it delegated
  other  failed, with the error command_failed and the last lines of stderr,
         or of stdout
After three delegations in a row that failed within 10 s each, the worker pauses, too, and returns them for another attempt.
To find out, it may take the next delegation before it reports a failure, which then waits for at most 10 s. A pause takes
5 s, doubling to 5 minutes (for one delegation alone, to 40 s at most), or until the time that a preset's provider named; then the worker tries one delegation.
Output of more than 64 KiB and output that is not text become the artifact 'stdout'. Output of more than 3 MiB fails the
delegation with the error output_too_large.
If the delegator gave a result schema, stdout must be JSON that fits it. Otherwise the delegation fails with the error
result_invalid; the reply is the output.

Files:
  ERRAND_ARTIFACTS_DIR   an empty folder, new for each attempt
The files that are in it when the command ends, also with a question or a failure, become artifacts. The name of each is
its path in the folder; links are left out. The folder is then removed. A file may be as large as the operator allows (100
MiB by default). A larger one fails the delegation with the error output_too_large; so do more than about 2 MiB of files
at a broker that stores none. Another attempt starts without the files of the one before.

Usage:
  ERRAND_USAGE_FILE   the command may write to it what it has used, as JSON with
                      input_tokens, output_tokens, cached_tokens,
                      reasoning_tokens, cost, currency, model; all optional
It is read every 2 s while the command runs, and at its end, so that a budget can stop the work. Of several lines, the last
whole one counts: each has all that was used so far, and no amount shrinks.

Progress:
Each line of stdout and stderr is reported as progress, with --progress-fd only the lines of that file descriptor. A
line {"progress": {...}} on stderr or the file descriptor reports message, current_step, tools_used, done, total and
eta_seconds; any other line of text is a message.

Worktrees:
With --worktree, in a folder of a git repository, each conversation (the delegations of one delegator in one context) works
in a git worktree of its own, on a branch of its own. What differs from the commit where the branch began becomes the
artifact 'changes.diff', for 'git apply'. After a delegation, a worktree is removed if nothing would be lost with it, such as
uncommitted changes; files that git ignores do not count. The branch stays if it has commits that no other branch has. 'git
worktree list' lists the worktrees. See docs/recipes.md.

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

Children:
With a token of its own (ERRAND_COMMAND_TOKEN, which it gets as ERRAND_TOKEN), the command can delegate children with
'errand delegate --parent "$ERRAND_DELEGATION_ID"', and wait for them without a worker: it prints {"wait_for":
{"children": ["dlg_..."]}} as the last line and exits with 79. Its fields are those of POST /v1/leases/{id}/await:
children, until, time_limit_seconds, checkpoint. When the children have ended, the command runs again from the start, with the
same stdin, and also with:
  ERRAND_CHILDREN_FILE   a JSON file: {"outcome": "ended" or "time_limit",
                         "children": [{"id", "state", "delegation"?}]}

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
With --preset, a coding agent works: claude, codex, gemini, copilot or opencode. Its final message is the answer, and its
steps are progress. The next delegation of the same delegator in the same context continues the conversation; the ids are
kept in ~/.local/state/errand. Arguments after '--' go to the program. A person approves the tools of claude, and of gemini,
copilot and opencode, which are run as agents that speak ACP; so is codex if its adapter 'codex-acp' is on the PATH and no
arguments are given. The process waits for the answer (--hold); with --ask park, no process waits. With --ask none, they run headless: nobody is asked, and they may do what their own settings and arguments allow.
'errand doctor --preset' says what is installed. See docs/recipes.md. --preset shell runs what delegators send as a script:
limit them with 'agent put --accepts-from'.

Agents that speak ACP:
With --acp, the command is an agent of the Agent Client Protocol, which is started once for each slot. A tool that needs
approval becomes a question with its arguments. The process waits for the answer (--hold); after that it ends, and the
answer lets a new one go on in the same conversation. The mode in which the agent asks is set each time. See
docs/recipes.md.`;

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
        ...Object.keys(PROGRAMS),
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
  command.option(
    "--worktree",
    "work in a git worktree for each conversation, and return what changed in it as a diff",
  );
  withAcpOptions(command);
  withClaudeOptions(command);
  withWorkerOptions(command)
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        "errand work --agent scout -- wc -w",
        "errand work --agent reviewer --preset claude --timeout 30m -- --permission-mode acceptEdits",
        "errand work --agent deployer -- sh -c 'case \"$ERRAND_DECISION:$ERRAND_ANSWER\" in :) echo Go?; exit 79;; approve:*) ./deploy.sh;; *) echo not deployed;; esac'",
        "errand work --agent plotter -- sh -c './plot > \"$ERRAND_ARTIFACTS_DIR/plot.png\" && echo plotted'",
        "errand work --agent coder --preset gemini",
        "errand work --agent coder --acp -- npx some-agent --acp",
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
  const isShell = options.preset === "shell";
  const way =
    options.preset === undefined || options.preset === "shell"
      ? undefined
      : await wayOf(options.preset, options, words, host.childEnv.PATH);
  const acp = acpChoice(options, options.preset, way?.kind === "acp");
  const asking = claudeChoice(options, options.preset);
  const [program, ...args] = commandOf(isShell, way, words);
  await checkCommand(program, host.childEnv.PATH, way?.install);
  const warn = (text: string) => void note(host, text).catch(() => undefined);
  const connection = await connect(host, options);
  const worktrees = options.worktree ? await openWorktrees(host, connection.url ?? "", warn) : undefined;
  const inherited = worktrees ? withoutRepository(host.childEnv) : host.childEnv;
  const children = new ChildProcesses();
  const job: Job = {
    start: startOf(program, isShell, way, [...budgetOf(asking), ...words]),
    runsScripts: isShell,
    hasWorked: false,
    preset: way?.kind === "headless" ? way.preset : undefined,
    children,
    sessions: new Sessions(host.childEnv.XDG_STATE_HOME),
    warn,
    environment: { inherited, url: connection.url, progressFd: options.progressFd },
    limits: {
      timeoutMs: toMs(options.timeout),
      idleTimeoutMs: toMs(options.idleTimeout),
      progressFd: options.progressFd,
    },
  };
  const speaker = acp
    ? await acpWorker(host, [program, ...args], job, acp, way)
    : claudeWorker(host, program, words, job, asking);
  const workOn = speaker
    ? (task: Work, workspace: Workspace) => speaker.run(task, workspace)
    : (task: Work, workspace: Workspace) => runTask(task, workspace, job);
  const handle: Handler = worktrees
    ? (task) => worktrees.use(task, (workspace) => workOn(task, workspace))
    : (task) => workOn(task, here());
  const agent = new Agent(
    {
      ...(await connectForLeases(host, options, connection)),
      ...agentOptions(host, options, { mayKeepRunning: true }),
    },
    handle,
    { blame: (reply) => blameOf(reply, job), tellsErrors: true },
  );
  await interruptible(
    async (signal) => {
      await removeLeftBehind();
      const found = await ensureAgent(new Admin(connection), options.agent, signal);
      if (mayLease(found) && !options.quiet && !options.json)
        await note(host, `working for ${options.agent} as ${agent.workerId}; press Ctrl-C to stop.`);
      if (process.pid === 1 && !options.json) await note(host, NEEDS_INIT);
      if (way?.kind === "headless" && way.note !== undefined && !options.json) await note(host, way.note);
      if (job.runsScripts && found.accepts_from?.includes("*")) await note(host, openShell(options.agent));
      await agent.run(signal).finally(() => speaker?.close?.());
      signal.throwIfAborted();
    },
    () => children.killAll(),
  );
}

async function openWorktrees(
  host: CliHost,
  broker: string,
  warn: (text: string) => void,
): Promise<Worktrees> {
  const home = join(stateFolder(host.childEnv.XDG_STATE_HOME), "worktrees");
  try {
    return await Worktrees.open({ git: new Git(host.childEnv), folder: cwd(), home, broker, warn });
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    throw new InvalidArgumentError(
      `--worktree requires a folder of a git repository that has a commit and is not bare (${error.message}).`,
    );
  }
}

/** A worker for a program that asks people while it works. */
interface Speaker {
  readonly run: (task: Work, workspace: Workspace) => Promise<Outcome>;
  readonly close?: () => Promise<void>;
}

/** Loads the protocol's SDK, which no other command needs. */
async function acpWorker(
  host: CliHost,
  command: readonly [string, ...string[]],
  { children, environment, limits, warn }: Job,
  chosen: AcpChoice,
  way: AcpWay | HeadlessWay | undefined,
) {
  const { AcpWorker } = await import("./acp/worker.ts");
  const { version } = host;
  const stateHome = host.childEnv.XDG_STATE_HOME;
  const { env, asksItself } = way?.kind === "acp" ? way : { env: {}, asksItself: false };
  return new AcpWorker({
    ...{ command, children, limits, warn, version, stateHome, asksItself },
    environment: { ...environment, inherited: { ...environment.inherited, ...env } },
    ...chosen,
  });
}

const budgetOf = (chosen: ClaudeChoice | undefined): readonly string[] =>
  chosen?.maxBudgetUsd === undefined ? [] : ["--max-budget-usd", String(chosen.maxBudgetUsd)];

/** Undefined if nobody is asked: then the program is run as other presets are. */
function claudeWorker(
  host: CliHost,
  program: string,
  extra: readonly string[],
  { children, environment, limits, warn }: Job,
  chosen: ClaudeChoice | undefined,
): Speaker | undefined {
  if (chosen === undefined || chosen.ask === "none") return undefined;
  const { ask, holdMs, stickyMs } = chosen;
  const stateHome = host.childEnv.XDG_STATE_HOME;
  const shared = { program, children, environment, limits, warn, stateHome };
  return new ClaudeWorker({
    ...shared,
    extra: [...budgetOf(chosen), ...extra],
    holdMs,
    stickyMs,
    parks: ask === "park",
  });
}

/**
 * Arguments of `sh` before the path of a script. The delegator gets the messages of the shell, and the path would be in
 * them: so the shell reads the file first, and is called `sh` there. The variable's name is one that no environment has,
 * because a variable of the environment would be passed on to all commands of the script. The space is for scripts that
 * begin with a dash.
 */
const READ_SCRIPT = ["-c", '_errand_task=$(cat "$1") || exit; shift; eval " $_errand_task"', "sh"] as const;

function commandOf(
  isShell: boolean,
  way: AcpWay | HeadlessWay | undefined,
  words: readonly string[],
): readonly [string, ...string[]] {
  if (isShell) return ["sh"];
  if (way !== undefined) return way.kind === "acp" ? way.command : [way.preset.program];
  const [program, ...args] = words;
  if (program !== undefined) return [program, ...args];
  throw new InvalidArgumentError(
    `Pass a command after '--', or --preset ${Object.keys(PROGRAMS).join(", ")} or shell.`,
  );
}

function startOf(
  program: string,
  isShell: boolean,
  way: AcpWay | HeadlessWay | undefined,
  words: readonly string[],
): Job["start"] {
  if (isShell)
    // A file: as an argument, all users of the machine could read the script, and it would have to be short.
    return (_task, _session, { script = "" }) => ({
      command: [program, ...READ_SCRIPT, script, ...words],
      input: "",
    });
  // An agent that speaks ACP is not started for each task.
  if (way?.kind !== "headless") return ({ text }) => ({ command: [program, ...words.slice(1)], input: text });
  const { preset } = way;
  return ({ text, delegation }, session, files) => {
    const result = wantedResult(delegation, preset);
    const args = result?.args(files.resultSchema ?? "") ?? [];
    return {
      command: [program, ...preset.args(session, [...args, ...words], foldersOf(files))],
      input: promptOf([text, ...(result?.words ?? [])], files),
    };
  };
}

const openShell = (agent: string): string =>
  `everyone who may delegate at this broker can now run commands as this user of this machine; limit them with 'errand agent put ${agent} --accepts-from <principals...>'.`;

/** A script of a delegator fails by itself. Another program's status does not say whose fault it is. */
function blameOf({ error }: Reply, { runsScripts }: Job) {
  if (runsScripts) return "task";
  return error?.code === "command_failed" && error.retryable !== true ? "suspect" : "final";
}

const toMs = (seconds: number | undefined): number | undefined =>
  seconds && Math.min(seconds * 1000, MAX_TIMER_MS);
