/**
 * The tree of commands, as commander has it. Help, completion and docs/cli.md are all read from it.
 * Limit: what the commands do is in their own files.
 */
import { Command } from "commander";
import { addAgent } from "./commands/agent.ts";
import { addAnswer } from "./commands/answer.ts";
import { addApprove, addDeny } from "./commands/approve-deny.ts";
import { addAudit } from "./commands/audit.ts";
import { addCancel } from "./commands/cancel.ts";
import { addDelegate } from "./commands/delegate.ts";
import { addDelete } from "./commands/delete.ts";
import { addGet } from "./commands/get.ts";
import { addList } from "./commands/list.ts";
import { addMessage } from "./commands/message.ts";
import { addRedrive } from "./commands/redrive.ts";
import { addResults } from "./commands/results.ts";
import { addServe } from "./commands/serve.ts";
import { addToken } from "./commands/token.ts";
import { addWatch } from "./commands/watch.ts";
import { addCompletion } from "./completion/completion.ts";
import { addGlobalOptions, type Cli, examples } from "./context.ts";
import { addDoctor } from "./doctor/doctor.ts";
import { addMcp } from "./mcp/mcp.ts";
import { addRelay } from "./relay/relay.ts";
import { addWork } from "./work/work.ts";

/** In the order that the help lists them. */
const COMMANDS = [
  addServe,
  addDelegate,
  addGet,
  addList,
  addResults,
  addWatch,
  addAnswer,
  addApprove,
  addDeny,
  addMessage,
  addCancel,
  addRedrive,
  addDelete,
  addWork,
  addRelay,
  addMcp,
  addAgent,
  addToken,
  addAudit,
  addDoctor,
  addCompletion,
];

const ABOUT = `
Exit codes: 0 done · 1 the agent failed, refused or asks, or the work is not there · 64 a mistake in the command ·
70 a bug · 75 the broker is away or full, try again · 77 the token · 78 the configuration, an unknown agent ·
124 a wait or a deadline ran out · 130 Ctrl-C.

Environment: ERRAND_URL and ERRAND_TOKEN say which broker, and as whom; without them it is the one that runs on
.errand here or in a folder above. NO_COLOR turns colours off.`;

export function buildProgram(cli: Cli): Command {
  const { host } = cli;
  const program = new Command("errand")
    .description("Delegate work to agents that poll.")
    .version(host.version, "-V, --version", "print the version")
    .helpOption("-h, --help", "print help")
    .helpCommand("help [command]", "print help for a command")
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => host.stdout.write(text),
      writeErr: (text) => host.stderr.write(text),
      // Said once, by complain().
      outputError: () => undefined,
    })
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        "errand serve",
        "errand work --agent scout -- wc -w",
        'errand delegate scout "how many words is this" --wait',
        "errand watch",
      ),
    );
  addGlobalOptions(program);
  for (const add of COMMANDS) add(program, cli);
  return program;
}

/** How it is called: `errand agent put`. */
export function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();
}

/** The command and all below it, parents first. */
export function everyCommand(command: Command): Command[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}
