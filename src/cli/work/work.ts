/** `errand work`: turns any command into a poll-mode agent. Limit: one command, one task, one run. */
import type { Command } from "commander";
import { Admin } from "../../client/admin.ts";
import { Agent } from "../../client/agent.ts";
import type { Outcome, Work } from "../../client/work.ts";
import { agentName, type Cli, connect, examples, type GlobalOptions, wholeBetween } from "../context.ts";
import type { CliHost } from "../host.ts";
import { note, oneLine } from "../show/output.ts";
import { interruptible } from "../signals.ts";
import { cutBytes } from "./capture.ts";
import { Children, type Ended } from "./child.ts";
import { type CommandFiles, layOut } from "./command-files.ts";
import { ASKS, isQuestionLine, toQuestion } from "./command-question.ts";
import { cannotStart, toReply } from "./command-reply.ts";
import { checkCommand } from "./find-command.ts";
import { workLog } from "./log.ts";
import { ensureAgent, type WorkerOptions, withWorkerOptions } from "./worker.ts";

interface WorkOptions extends GlobalOptions, WorkerOptions {
  readonly concurrency?: number;
}

const IN_ENV_MAX = 32 * 1024;
const PROGRESS_MAX = 1024;
/** A child has 5 s between SIGTERM and SIGKILL; its lease goes back after that. */
const STOP_WITHIN_SECONDS = 8;

const ABOUT = `
The command gets the task on stdin, and in its environment ERRAND_TASK (up to 32 KiB), ERRAND_DELEGATION_ID,
ERRAND_LEASE_ID, ERRAND_ATTEMPT and ERRAND_CONTEXT_ID. The lines it prints are shown as progress. Exit
status 0 completes the delegation with what it printed on stdout; 75 asks for another attempt; 79 asks a
question; any other fails it with the last lines of stderr. On a cancel it gets SIGTERM, and SIGKILL 5 s
later. Ctrl-C gives the work back.

A question is what the command printed on stdout before it ended with 79; or, when its last line is JSON like
{"interrupt": {"text": "Which?", "options": ["a", "b"]}}, that, with the fields of POST /v1/leases/{id}/interrupt:
kind, text, message, request_id, options, schema, requests, expires_in_seconds. The answer runs the command again,
from the top and with the same stdin. Then ERRAND_DECISION is approve or deny if the newest answer is a decision, and
ERRAND_ANSWER is its text (up to 32 KiB) if it has one: each is unset when it was not given, so a bare deny sets no
ERRAND_ANSWER. ERRAND_ANSWERS_FILE names a JSON file with all answers so far:
{"<request_id>": {"text"?, "decision"?, "data"?, "by", "at", "message"}}. Follow-ups are lines of the file
ERRAND_MESSAGES_FILE, one A2A Message as JSON each; they are added while the command runs.
`;

export function addWork(program: Command, { host }: Cli): void {
  const command = program
    .command("work")
    .description("be an agent: run a command for each delegation and reply with its output")
    .requiredOption("--agent <name>", "whose work to do; the agent is created if there is none", agentName)
    .argument("<command...>", "the command and its arguments, after '--'")
    .option("--concurrency <n>", "how many at once (default 1)", wholeBetween(1, 1000));
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
  const children = new Children();
  const agent = new Agent(
    {
      ...connection,
      // It was there a moment ago.
      failFast: false,
      agent: options.agent,
      concurrency: options.concurrency,
      leaseSeconds: options.lease,
      workerId: options.workerId,
      once: options.once,
      stopWithinSeconds: STOP_WITHIN_SECONDS,
      onEvent: workLog(host, options),
    },
    (task) => handle(task, command, host, children),
  );
  await interruptible(
    async (signal) => {
      const isOurs = await ensureAgent(new Admin(connection), options.agent, signal);
      if (isOurs && !options.quiet && !options.json)
        await note(host, `working for ${options.agent} as ${agent.workerId}; Ctrl-C stops.`);
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
  children: Children,
): Promise<Outcome> {
  const files = await layOut(task);
  let ended: Ended;
  try {
    ended = await children.run({
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
  return ended.exitCode === ASKS ? toQuestion(ended) : toReply(ended);
}

/** The command does the work of one delegation; the worker's own rights are not its business. */
function envFor(
  task: Work,
  inherited: CliHost["childEnv"],
  files: CommandFiles,
): Record<string, string | undefined> {
  // Nor is what an outer command was told, when it is one itself.
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
    // Never "", which a shell takes for an answer.
    ...(answer && answer.text !== "" && fits(answer.text) && { ERRAND_ANSWER: answer.text }),
    ...(answer?.decision && { ERRAND_DECISION: answer.decision }),
    ERRAND_ANSWERS_FILE: files.answers,
    ERRAND_MESSAGES_FILE: files.messages,
  };
}

function fits(text: string): boolean {
  return Buffer.byteLength(text) <= IN_ENV_MAX && !text.includes("\0");
}
