/**
 * The tree of commands in commander. Help, completion scripts and the table in docs/recipes.md are generated from it.
 */
import { Command } from "commander";
import { loadCommands } from "./commands.ts";
import { addGlobalOptions, type Cli, examples } from "./context.ts";
import { BY_SEVERITY } from "./failure.ts";
import type { CliHost } from "./host.ts";
import { fitHelp } from "./show/help-text.ts";
import { write } from "./show/output.ts";
import { terminalWidth } from "./show/terminal-width.ts";

const ABOUT = `
Exit codes:
  0    success
  1    the agent failed or rejected the work
  64   usage error, or the state of the delegation does not allow it
  66   there is no such delegation, agent, token or session
  70   internal error
  75   the broker is unavailable or overloaded; try again
  77   the token is missing, invalid or not allowed to do this
  78   configuration error
  79   the agent asks a question
  124  a wait or a deadline expired
  130  interrupted by Ctrl-C
Output that cannot be written exits with 78, except to a stdout that the caller has closed (errand list >&-): Node.js puts
/dev/null there, so that what is printed is lost unnoticed.
A command for several delegations continues after a refusal, and exits with the most serious code, in this order:
${BY_SEVERITY.join(", ")}.

An id of a delegation may be shortened to a unique beginning, also without its dlg_0_: 'errand get 7k2mq9xa'. It is
searched for among the newest 1000 delegations that you may see. @last is the newest that you delegated.

Environment: ERRAND_URL and ERRAND_TOKEN select the broker and the principal. Without them, errand uses the local
broker whose data directory is .errand, here or in a parent directory. NO_COLOR disables colors.

Other users of this machine can read command lines: pass a token in ERRAND_TOKEN instead of --token, and the URL of a
Redis with a password in ERRAND_REDIS_URL.`;

const GLOBAL = `
Options of all commands: --json, --url, --token. 'errand --help' explains them, short ids and the exit codes.`;

/** Longer lines are hard to read. */
const MAX_WIDTH = 100;
const helpWidth = (host: CliHost): number => Math.min(MAX_WIDTH, terminalWidth(host, "stdout"));

/**
 * With all commands, or with this one alone. `writing` gets each write of help or of the version, which commander does not
 * await.
 */
export async function buildProgram(
  cli: Cli,
  writing: (written: Promise<void>) => void = () => undefined,
  command?: string,
): Promise<Command> {
  const { host } = cli;
  const program = new Command("errand")
    .description("Delegate work to agents that poll.")
    .version(host.version, "-V, --version", "print the version")
    .helpOption("-h, --help", "print help")
    .helpCommand("help [command]", "print help for a command")
    .exitOverride()
    .configureOutput({
      getOutHelpWidth: () => helpWidth(host),
      writeOut: (text) => writing(write(host.stdout, fitHelp(text, helpWidth(host)))),
      writeErr: (text) => host.stderr.write(text),
      // printError() prints errors, once.
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
  addGlobalOptions(program).addHelpText("afterAll", ({ command }) => (command.parent ? GLOBAL : ""));
  for (const add of await loadCommands(command)) add(program, cli);
  return program;
}

/** The command's full name: `errand agent put`. */
export function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();
}

/** The command and all its subcommands, parents first. */
export function everyCommand(command: Command): Command[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}
