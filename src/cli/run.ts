/**
 * `errand`: builds the program, runs one command, turns whatever happens into an exit code.
 * Limit: it never ends the process; `main.ts` does, with the code it is given.
 */
import { Command } from "commander";
import { addAgent } from "./agent.ts";
import { addCancel } from "./cancel.ts";
import { addGlobalOptions, type Cli, examples } from "./context.ts";
import { addDelegate } from "./delegate.ts";
import { toFailure } from "./failure.ts";
import { addGet } from "./get.ts";
import type { CliHost } from "./host.ts";
import { complain } from "./output.ts";
import { addServe } from "./serve.ts";
import { addToken } from "./token.ts";
import { addWatch } from "./watch.ts";
import { addWork } from "./work.ts";

/** `argv` without node and the script, as in `process.argv.slice(2)`. */
export async function runCli(argv: string[], host: CliHost): Promise<number> {
  let exitCode = 0;
  const program = build({
    host,
    end: (code) => {
      exitCode = code;
    },
  });
  // A reader of stdout that went away is told by the write that fails; unheard, the event would be fatal.
  for (const stream of [host.stdout, host.stderr]) stream.on("error", () => undefined);
  try {
    await program.parseAsync(argv, { from: "user" });
    return exitCode;
  } catch (thrown) {
    const { exitCode: code, error } = toFailure(thrown);
    if (error) await complain(host, error, wantsJson(argv)).catch(() => undefined);
    return code;
  }
}

function build(cli: Cli): Command {
  const { host } = cli;
  const program = new Command("errand")
    .description("Delegate work to agents that poll.")
    .version(host.version, "-V, --version")
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => host.stdout.write(text),
      writeErr: (text) => host.stderr.write(text),
      // Said once, by complain().
      outputError: () => undefined,
    })
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
  for (const add of [addServe, addDelegate, addGet, addWatch, addCancel, addWork, addAgent, addToken]) {
    add(program, cli);
  }
  return program;
}

/** Also where the arguments could not be parsed; what follows `--` is not ours. */
function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  return (end < 0 ? argv : argv.slice(0, end)).includes("--json");
}
