/** `errand completion`: prints a shell completion script. Limit: it does not complete agents' names. */
import { Argument, type Command } from "commander";
import { type Cli, examples } from "../context.ts";
import { write } from "../show/output.ts";
import { commandSpecs } from "./command-specs.ts";
import { SHELLS, type Shell, scriptFor } from "./scripts.ts";

const ABOUT = `
Install it with one of these:
  bash: errand completion bash \\
          > ~/.local/share/bash-completion/completions/errand
  zsh:  errand completion zsh > "\${fpath[1]}/_errand"
  fish: errand completion fish > ~/.config/fish/completions/errand.fish`;

export function addCompletion(program: Command, { host }: Cli): void {
  program
    .command("completion")
    .description("print a shell completion script")
    .addArgument(new Argument("<shell>", "the shell").choices(SHELLS))
    .addHelpText("after", ABOUT)
    .addHelpText("after", examples("source <(errand completion bash)"))
    .action(async (shell: Shell) => write(host.stdout, scriptFor(shell, commandSpecs(program))));
}
