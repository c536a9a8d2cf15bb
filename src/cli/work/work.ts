/** `errand work`: turns any command into an agent that polls. It runs the command once for each lease. */
import type { Command } from "commander";
import { Admin } from "../../client/admin.ts";
import { Agent } from "../../client/agent.ts";
import type { Outcome, Work } from "../../client/work.ts";
import { type Cli, connect, examples, type GlobalOptions } from "../context.ts";
import type { CliHost } from "../host.ts";
import { agentName, wholeBetween } from "../input/arguments.ts";
import { note, oneLine } from "../show/output.ts";
import { interruptible } from "../signals.ts";
import { cutBytes } from "./capture.ts";
import { ChildProcesses, type CommandResult } from "./child.ts";
import { type CommandFiles, createCommandFiles } from "./command-files.ts";
import { EXIT_QUESTION, isQuestionLine, toQuestion } from "./command-question.ts";
import { cannotStart, toReply } from "./command-reply.ts";
import { checkCommand } from "./find-command.ts";
import { agentOptions, ensureAgent, type WorkerOptions, withWorkerOptions } from "./worker.ts";

type WorkOptions = GlobalOptions & WorkerOptions;

const IN_ENV_MAX = 32 * 1024;
const PROGRESS_MAX = 1024;

const ABOUT = `
The command gets the task on stdin. Its environment has ERRAND_TASK (the task, up to 32 KiB), ERRAND_DELEGATION_ID,
ERRAND_LEASE_ID, ERRAND_ATTEMPT and ERRAND_CONTEXT_ID. Each line that it prints is reported as progress. Its exit status
decides the reply: 0 completes the delegation with its stdout, 75 requests another attempt, 79 asks a question, and any
other fails the delegation with the error command_failed and the last lines of stderr. If the delegation is canceled,
the command gets SIGTERM, and SIGKILL after 5 s. Ctrl-C returns the work to the queue.

To ask a question, print it to stdout and exit with 79. To ask for more than a text, print JSON as the last line, for
example {"interrupt": {"text": "Which?", "options": ["a", "b"]}}. Its fields are those of POST
/v1/leases/{id}/interrupt: kind, text, message, request_id, options, schema, action, edit, requests,
expires_in_seconds. An answer is one of the options, or data that fits the schema. For an action, it is a decision; with
edit, its data replaces the arguments. After the answer, the command runs again from the start, with the same stdin.
ERRAND_DECISION is then approve or deny if the newest answer is a decision, and
ERRAND_ANSWER is its text (up to 32 KiB) if it has one. Otherwise they are unset, so a plain deny sets no ERRAND_ANSWER.
ERRAND_ANSWERS_FILE names a JSON file with all answers so far:
{"<request_id>": {"text"?, "decision"?, "data"?, "by", "at", "message"}}. Follow-up messages are appended to the file
ERRAND_MESSAGES_FILE while the command runs, one A2A Message as JSON per line.`;

export function addWork(program: Command, { host }: Cli): void {
  const command = program
    .command("work")
    .description("act as an agent: run a command for each delegation and reply with its output")
    .requiredOption("--agent <name>", "the agent to work for; created if it does not exist", agentName)
    .argument("<command...>", "the command and its arguments, after '--'")
    .option("--concurrency <n>", "maximum delegations at once (default 1)", wholeBetween(1, 1000));
  withWorkerOptions(command)
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        "errand work --agent scout -- wc -w",
        "errand work --agent deployer -- sh -c 'case \"$ERRAND_DECISION\" in approve) ./deploy ;; deny) exit 1 ;; *) echo Deploy?; exit 79 ;; esac'",
        "errand work --agent builder --concurrency 4 --lease 30 -- sh -c 'make \"$ERRAND_TASK\"'",
      ),
    )
    .action(async (words: string[], _options: unknown, command: Command) => {
      const [file = "", ...args] = words;
      await work(host, [file, ...args], command.optsWithGlobals<WorkOptions>());
    });
}

async function work(
  host: CliHost,
  command: readonly [string, ...string[]],
  options: WorkOptions,
): Promise<void> {
  await checkCommand(command[0], host.childEnv.PATH);
  const connection = await connect(host, options);
  const children = new ChildProcesses();
  const agent = new Agent({ ...connection, ...agentOptions(host, options) }, (task) =>
    handle(task, command, host, children),
  );
  await interruptible(
    async (signal) => {
      const isOurs = await ensureAgent(new Admin(connection), options.agent, signal);
      if (isOurs && !options.quiet && !options.json)
        await note(host, `working for ${options.agent} as ${agent.workerId}; press Ctrl-C to stop.`);
      await agent.run(signal);
      signal.throwIfAborted();
    },
    () => children.killAll(),
  );
}

async function handle(
  task: Work,
  command: readonly [string, ...string[]],
  host: CliHost,
  children: ChildProcesses,
): Promise<Outcome> {
  const files = await createCommandFiles(task);
  let result: CommandResult;
  try {
    result = await children.run({
      command,
      env: envFor(task, host.childEnv, files),
      input: task.text,
      signal: task.signal,
      onLine: (line) => {
        const message = cutBytes(oneLine(line), PROGRESS_MAX);
        if (message !== "" && !isQuestionLine(line)) task.progress(message);
      },
    });
  } catch (error) {
    task.signal.throwIfAborted();
    return cannotStart(command[0], error);
  } finally {
    await files.remove();
  }
  return result.exitCode === EXIT_QUESTION ? toQuestion(result) : toReply(result);
}

/** The command's environment, without the worker's tokens. */
function envFor(
  task: Work,
  inherited: CliHost["childEnv"],
  files: CommandFiles,
): Record<string, string | undefined> {
  // This worker may itself be a command of `errand work`: drop its own task and answer, too.
  const {
    ERRAND_TOKEN: _token,
    ERRAND_REMOTE_TOKEN: _remoteToken,
    ERRAND_OPERATOR_TOKEN: _operatorToken,
    ERRAND_TASK: _task,
    ERRAND_ANSWER: _answer,
    ERRAND_DECISION: _decision,
    ...rest
  } = inherited;
  const { answer } = task;
  return {
    ...rest,
    ...(fits(task.text) && { ERRAND_TASK: task.text }),
    ERRAND_DELEGATION_ID: task.delegation.id,
    ERRAND_LEASE_ID: task.leaseId,
    ERRAND_ATTEMPT: String(task.attempt),
    ERRAND_CONTEXT_ID: task.delegation.context_id,
    // Never "", which would look like an answer to a shell script.
    ...(answer && answer.text !== "" && fits(answer.text) && { ERRAND_ANSWER: answer.text }),
    ...(answer?.decision && { ERRAND_DECISION: answer.decision }),
    ERRAND_ANSWERS_FILE: files.answers,
    ERRAND_MESSAGES_FILE: files.messages,
  };
}

function fits(text: string): boolean {
  return Buffer.byteLength(text) <= IN_ENV_MAX && !text.includes("\0");
}
