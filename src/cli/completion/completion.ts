/** `errand completion`: prints a shell completion script, and the agents and ids that the script offers. */
import { Argument, type Command, Option } from "commander";
import { type Cli, connectToRead, examples, type GlobalOptions } from "../context.ts";
import { usageError } from "../failure.ts";
import { print, printJson, write } from "../show/output.ts";
import { commandSpecs } from "./command-specs.ts";
import { LISTINGS, type Listing, listWords } from "./listings.ts";
import { SHELLS, type Shell, scriptFor } from "./scripts.ts";

const ABOUT = `
It completes commands, options, files, agents and delegations, also after './errand' and 'npx errand-broker'. For agents and delegations, Tab
asks the broker, which takes a moment.

To try it in this shell: source <(errand completion bash), source <(errand completion zsh), or errand completion fish |
source. To install it:
  bash: errand completion bash \\
          > ~/.local/share/bash-completion/completions/errand
  zsh:  errand completion zsh > "\${fpath[1]}/_errand"
  fish: errand completion fish > ~/.config/fish/completions/errand.fish
bash and fish load these files at the first 'errand', and so not for 'npx errand-broker': for that, source the file in ~/.bashrc
or ~/.config/fish/config.fish.`;

export function addCompletion(program: Command, { host }: Cli): void {
  program
    .command("completion")
    .description("print a shell completion script")
    .addArgument(new Argument("[shell]", "the shell").choices(SHELLS))
    .addOption(
      new Option(
        "--list <what>",
        "print what the script offers for an argument: words, each with a description after a tab",
      ).choices(LISTINGS),
    )
    .addHelpText("after", ABOUT)
    .addHelpText("after", examples("source <(errand completion bash)", "errand completion --list agents"))
    .action(async (shell: Shell | undefined, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions & { list?: Listing }>();
      const { list } = options;
      if ((shell === undefined) === (list === undefined))
        throw usageError(`name a shell: ${SHELLS.join(", ")}`);
      if (shell !== undefined) {
        await write(host.stdout, scriptFor(shell, commandSpecs(program), host.program));
        return;
      }
      for (const one of list ? await listWords(list, await connectToRead(host, options)) : []) {
        await (options.json ? printJson(host, one) : print(host, `${one.word}\t${one.about}`));
      }
    });
}
